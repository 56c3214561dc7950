// Reads the components of tokenizer.json that are chains of steps: normalizer, pre-tokenizer, decoder.
#pragma once

#include "engine/tokenizer/decoder_rules.hpp"
#include "engine/tokenizer/json_node.hpp"
#include "engine/tokenizer/normalizer.hpp"
#include "engine/tokenizer/pre_tokenizer.hpp"

namespace dculab::engine {

// Each throws InputError for a step that is not supported, or not where it stands.
[[nodiscard]] Normalizer read_normalizer(const JsonNode& node);
[[nodiscard]] PreTokenizerRules read_pre_tokenizer(const JsonNode& node);
[[nodiscard]] DecoderRules read_decoder(const JsonNode& node);

}  // namespace dculab::engine

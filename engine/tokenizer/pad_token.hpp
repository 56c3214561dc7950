// Which token a model folder pads with: what batches of equal lengths have where a prompt is shorter.
#pragma once

#include <filesystem>
#include <optional>

#include "core/kv/skip.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace dculab::engine {

// pad_token of `folder`/tokenizer_config.json, which whoever pads goes by; else pad_token_id of generation_config.json,
// else of config.json. Throws InputError for a file that is broken, or a token that tokenizer.json does not have.
[[nodiscard]] std::optional<TokenId> read_pad_token(const std::filesystem::path& folder, const Tokenizer& tokenizer);

// `asked` with the folder's pad token, where padding is skipped and none is given. Throws InputError where the folder
// names none, or the tokenizer itself puts that token around every prompt: then padding cannot be told from it.
[[nodiscard]] KvSkip with_pad_token(KvSkip asked, const std::filesystem::path& folder, const Tokenizer& tokenizer);

}  // namespace dculab::engine

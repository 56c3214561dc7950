// What is done to a text before it is split into words. Names are those of tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dculab::engine {

enum class NormalizerKind : std::uint8_t {
  nfc,      // Unicode Standard Annex 15: composed characters
  prepend,  // puts `content` before a text that is not empty
  replace,  // every `pattern`, taken literally, becomes `content`
};

struct NormalizerStep {
  NormalizerKind kind = NormalizerKind::nfc;
  std::string pattern{};
  std::string content{};
};

using Normalizer = std::vector<NormalizerStep>;  // in order

// Precondition: `text` is valid UTF-8.
[[nodiscard]] std::string normalized(std::string_view text, const Normalizer& normalizer);

// `text` with every `pattern` replaced, from left to right. Precondition: `pattern` is not empty.
[[nodiscard]] std::string replaced(std::string_view text, std::string_view pattern, std::string_view content);

}  // namespace dculab::engine

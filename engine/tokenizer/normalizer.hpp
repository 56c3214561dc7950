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

// How far rules may blow a text up: a few steps that each put a long text in place of a short one fill any memory.
// 64 times its size, and some room for texts that are next to nothing.
enum class GrowthRoom : std::size_t { text = std::size_t{1} << 20, token = 1024 };
[[nodiscard]] constexpr std::size_t most_bytes(std::string_view text, GrowthRoom room) {
  return 64 * text.size() + static_cast<std::size_t>(room);
}

using Normalizer = std::vector<NormalizerStep>;  // in order

// Precondition: `text` is valid UTF-8. Throws InputError where the text would grow beyond most_bytes().
[[nodiscard]] std::string normalized(std::string_view text, const Normalizer& normalizer,
                                     GrowthRoom room = GrowthRoom::text);

// `text` with every `pattern` replaced, from left to right. Precondition: `pattern` is not empty. Throws InputError,
// and takes no memory, for a result of more than `most` bytes.
[[nodiscard]] std::string replaced(std::string_view text, std::string_view pattern, std::string_view content,
                                   std::size_t most = std::string::npos);

}  // namespace dculab::engine

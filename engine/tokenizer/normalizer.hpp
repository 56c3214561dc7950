// The Unicode form a text is brought to before it is split into words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dculab::engine {

enum class Normalization : std::uint8_t {
  none,
  nfc,  // Unicode Standard Annex 15: composed characters
};

// Precondition: `text` is valid UTF-8.
[[nodiscard]] std::string normalized(std::string_view text, Normalization form);

}  // namespace dculab::engine

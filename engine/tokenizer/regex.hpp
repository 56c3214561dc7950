// Finds the matches of a tokenizer's pattern in a text, as the Hugging Face `tokenizers` library finds them.
//
// That library uses Oniguruma in its Ruby syntax; here PCRE2 runs a translation of the pattern. What means something
// else in PCRE2 and cannot be translated is refused.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dculab::engine {

enum class PatternKind : std::uint8_t { regex, literal };

// A part of a text that is a match, or that lies between matches.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_match = false;
};

class Regex {
 public:
  // Throws InputError for a pattern that is malformed or not supported.
  Regex(const std::string& pattern, PatternKind kind);

  // Stretches that cover the text, in order. Precondition: `text` is valid UTF-8.
  // Throws InputError when the pattern backtracks without end on this text.
  [[nodiscard]] std::vector<Stretch> cover(std::string_view text) const;

 private:
  struct Code;  // the compiled pattern
  std::shared_ptr<const Code> code_;
};

// The PCRE2 pattern for an Oniguruma one. Throws InputError for what cannot be translated.
[[nodiscard]] std::string pcre_from_oniguruma(std::string_view pattern);

}  // namespace dculab::engine

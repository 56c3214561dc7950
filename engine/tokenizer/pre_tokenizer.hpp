// Cuts a text into the words that byte-pair encoding works on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/regex.hpp"

namespace dculab::engine {

// What becomes of a delimiter. Names are those of tokenizer.json.
enum class SplitBehavior : std::uint8_t { isolated, removed, contiguous, merged_with_previous, merged_with_next };

// Which stretches are the delimiters: `gaps` is "invert": true.
enum class Delimiter : std::uint8_t { matches, gaps };

struct SplitRule {
  Regex pattern;
  SplitBehavior behavior = SplitBehavior::isolated;
  Delimiter delimiter = Delimiter::matches;
};

// "Metaspace": spaces become a visible mark, and a text is given one at its beginning.
struct Metaspace {
  enum class Prepend : std::uint8_t { always, first, never };  // first: only to what stands first in the text

  std::string replacement = "\u2581";
  Prepend prepend = Prepend::always;
  bool split = true;  // each mark begins a word
};

// "ByteLevel": from here on words are written in the byte alphabet.
struct ByteLevel {
  bool add_prefix_space = true;  // to each piece that does not start with one; then comes use_regex
  bool use_regex = true;         // GPT-2's own pattern
};

// Applied in this order; each split to the pieces of the one before.
struct PreTokenizerRules {
  std::vector<SplitRule> splits{};
  std::optional<Metaspace> metaspace{};
  std::optional<ByteLevel> byte_level{};
  std::vector<SplitRule> splits_of_bytes{};  // these see the byte alphabet
};

enum class TextStart : std::uint8_t { here, earlier };  // whether a piece is the first of its text

class PreTokenizer {
 public:
  explicit PreTokenizer(PreTokenizerRules rules);

  // Hands over the words of `text` in order; each view lives only as long as the call of `consume`.
  // Precondition: `text` is valid UTF-8.
  void for_each_word(std::string_view text, TextStart start,
                     const std::function<void(std::string_view)>& consume) const;

 private:
  using Consume = std::function<void(std::string_view)>;
  void mark_spaces(std::string_view piece, TextStart start, const Consume& consume) const;
  void to_bytes(std::string_view piece, const Consume& consume) const;

  PreTokenizerRules rules_;
  std::optional<SplitRule> gpt2_;
};

}  // namespace dculab::engine

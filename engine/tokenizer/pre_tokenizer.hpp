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

struct PreTokenizerRules {
  std::vector<SplitRule> splits;  // applied in order, each to the pieces of the one before
  bool add_prefix_space = false;  // to each piece that does not start with one; then comes use_regex
  bool use_regex = false;         // GPT-2's own pattern
};

class PreTokenizer {
 public:
  explicit PreTokenizer(PreTokenizerRules rules);

  // Hands over the words of `text` in order; each view lives only as long as the call of `consume`.
  // Precondition: `text` is valid UTF-8.
  void for_each_word(std::string_view text, const std::function<void(std::string_view)>& consume) const;

 private:
  PreTokenizerRules rules_;
  std::optional<SplitRule> gpt2_;
};

}  // namespace dculab::engine

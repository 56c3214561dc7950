#include "core/kv/skip.hpp"

#include <algorithm>
#include <iterator>

namespace dculab {

bool add_word(KvSkip& skip, std::string_view word) {
  const bool all = word == "all";
  skip.padding |= all || word == "padding";
  skip.duplicate_prompts |= all || word == "duplicate_prompts";
  return all || word == "none" || word == "padding" || word == "duplicate_prompts";
}

std::string text_of(const KvSkip& skip) {
  if (!skip.padding) return skip.duplicate_prompts ? "duplicate_prompts" : "none";
  return skip.duplicate_prompts ? "padding, duplicate_prompts" : "padding";
}

std::vector<TokenId> without_padding(std::span<const TokenId> prompt, TokenId pad,
                                     std::span<const TokenId> stop_tokens) {
  const auto is_text = [pad](TokenId token) { return token != pad; };
  const auto first = std::ranges::find_if(prompt, is_text);
  const auto end = std::find_if(prompt.rbegin(), std::make_reverse_iterator(first), is_text).base();
  std::vector<TokenId> kept(first, end);
  if (std::ranges::find(stop_tokens, pad) == stop_tokens.end()) std::erase(kept, pad);
  return kept;
}

}  // namespace dculab

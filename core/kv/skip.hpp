// Tokens whose K and V are not written, so that they take no slot in the cache: Opt-KV's skip set (LLM-CoOpt,
// arXiv:2602.09323, section 3.1), as a user or a policy gives it. docs/decisions/0038-skip-set.md.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"

namespace dculab {

struct KvSkip {
  bool padding = false;                   // pad tokens of prompts are neither computed nor written
  bool duplicate_prompts = false;         // of requests with one prompt that are served together, one writes it
  std::optional<TokenId> pad_token_id{};  // of `padding`; absent: the model folder's

  friend bool operator==(const KvSkip&, const KvSkip&) = default;
};

// "none", "padding", "duplicate_prompts" or "all"; false for another word.
[[nodiscard]] bool add_word(KvSkip& skip, std::string_view word);
inline constexpr const char* kKvSkipWords = "none, padding, duplicate_prompts or all";

// "padding, duplicate_prompts", "none".
[[nodiscard]] std::string text_of(const KvSkip& skip);

// The prompt's tokens without its padding. Pad tokens are that wherever they stand; but where the same token ends a
// text (is one of `stop_tokens`), only those at the ends of the prompt: in the middle it parts one text from the next.
[[nodiscard]] std::vector<TokenId> without_padding(std::span<const TokenId> prompt, TokenId pad,
                                                   std::span<const TokenId> stop_tokens);

}  // namespace dculab

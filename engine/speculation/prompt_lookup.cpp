#include "engine/speculation/prompt_lookup.hpp"

#include <algorithm>
#include <chrono>

namespace dculab::engine {

std::span<const TokenId> find_continuation(std::span<const TokenId> tokens, int shortest, int longest, int most) {
  const std::size_t size = tokens.size(), enough = static_cast<std::size_t>(longest);
  std::size_t best = 0, continuation = 0;
  for (std::size_t end = 1; end < size && best < enough; ++end) {
    std::size_t length = 0;
    while (length < std::min(end, enough) && tokens[end - 1 - length] == tokens[size - 1 - length]) ++length;
    if (length <= best) continue;
    best = length;
    continuation = end;
  }
  if (best < static_cast<std::size_t>(shortest)) return {};
  return tokens.subspan(continuation, std::min(static_cast<std::size_t>(most), size - continuation));
}

Drafter::Proposal PromptLookup::propose(const Batch&, std::span<const ScheduledSequence> sequences) {
  const auto begin = std::chrono::steady_clock::now();
  Proposal proposal;
  for (const ScheduledSequence& scheduled : sequences) {
    const int most = std::min(scheduled.max_draft_tokens, scheduled.max_draft_depth);
    proposal.trees.push_back(most > 0 ? chain(find_continuation(scheduled.sequence->tokens, shortest_, longest_, most))
                                      : DraftTree());
  }
  proposal.duration = Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return proposal;
}

}  // namespace dculab::engine

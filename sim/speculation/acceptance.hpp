// How many drafted tokens a step may be expected to accept, and what that makes of its time.
//
// A guess for a place is tested when all places before it were accepted and the guesses of lower rank for the same
// place were rejected; it is then accepted with the rate of its depth, or of its rank where it is not the likeliest
// guess.
//
//   chain of g tokens, rate a for each     E = (1 - a^(g + 1)) / (1 - a)                                            (1)
//   chain, rates a_1, a_2, ...             E = 1 + a_1 + a_1 a_2 + ...
//   tree                                   E = 1 + sum over nodes of the product, along the path to it, of
//                                              rate(node) * product over siblings of lower rank of (1 - rate(sibling))
//   speed-up of the lecture                S = E / (g c + 1),   c: a draft step over one of the model             (2)
//   speed-up of priced or measured steps   S = E * plain step / (verify step + drafting)                     (3)
//
// (2) takes a step that verifies to last as long as one of a single token; (3) does not.
// Sources: Leviathan, Kalman, Matias 2023, arXiv:2211.17192, equation 1 and theorem 3.8, whose a is one rate, alike and
// independent at every place; Chen et al. 2023, arXiv:2302.01318; trees: Miao et al. 2024 (SpecInfer),
// arXiv:2305.09781, Cai et al. 2024 (Medusa), arXiv:2401.10774.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/draft_counts.hpp"
#include "core/draft_tree.hpp"
#include "core/drafter.hpp"

namespace dculab::sim {

struct Acceptance {
  // Of the likeliest guess at each depth, when all before were accepted; the last stands for deeper ones.
  std::vector<double> by_depth{};
  // Of the guess of each rank for a place, when those of lower rank were rejected. The first stands for by_depth where
  // that is empty.
  std::vector<double> by_rank{};

  // depth: 1, 2, ...; rank: 0, 1, ... 0 for a rank that by_rank does not have.
  [[nodiscard]] double rate(int depth, int rank) const;

  friend bool operator==(const Acceptance&, const Acceptance&) = default;
};

// Why drafts of that shape cannot be judged; empty when they can.
[[nodiscard]] std::vector<std::string> problems(const Acceptance& acceptance, const DraftShape& shape);

// The rates of a run. Ranks that were never tested are left out.
[[nodiscard]] Acceptance acceptance_of(const DraftCounts& counts);

// E: tokens of a step with such a draft, the model's own among them.
[[nodiscard]] double expected_tokens(const Acceptance& acceptance, const DraftShape& shape);

// (1). Preconditions: 0 <= rate <= 1, num_tokens >= 0.
[[nodiscard]] double expected_tokens_of_chain(double rate, int num_tokens);

// (2)
[[nodiscard]] double lecture_speed_up(double rate, int num_tokens, double cost);

// The rate at which a chain of `num_tokens` tokens gives `tokens`: (1) solved for a. Precondition: `tokens` lies in
// [1, num_tokens + 1].
[[nodiscard]] double rate_of_chain(double tokens, int num_tokens);

// Which nodes of a draft are accepted, drawn with those rates: a function of the seed and of the places alone, so that
// a sequence that is preempted gets the same again. `position`: where the draft's first token would stand.
[[nodiscard]] std::vector<int> accepted_path(const Acceptance& acceptance, const DraftTree& draft, std::uint64_t seed,
                                             int position);

}  // namespace dculab::sim

// Which tokens of a draft follow, and which one the model chooses after them.
//
// strict. Where guesses were not drawn (temperature 0, n-grams), the model's own token is drawn from p, and the guess
// that equals it is accepted: the text is that of the model alone, token for token. It is the rule below with q = 1 on
// the guess: a guess x is taken with p(x), and otherwise the token is distributed as p without the guesses.
//
// Where they were drawn from q, children of a place are tested in order of rank (Leviathan et al. 2023; for several
// children Miao et al. 2024, SpecInfer, and Jeon et al. 2024, recursive rejection without replacement):
//
//   accept x with min(1, p(x) / q(x));   otherwise p <- norm(max(p - q, 0)), q <- q without x, renormalised
//
// and when all are rejected the token is drawn from what p has become. Why this is exact: let x be drawn from q.
// P(token = t) = min(p(t), q(t)) + P(rejected) * r(t), where r is what is drawn after a rejection, and
// P(rejected) = sum max(p - q, 0). With r = norm(max(p - q, 0)) that is min(p, q) + max(p - q, 0) = p. By induction the
// children that are left yield r exactly whatever their q is, if the next is drawn from it: and the next child of a
// drawing without replacement is drawn from q without the tokens before, given these. So r does not depend on which
// child was rejected, and the token is distributed as p.
//
// typical (Cai et al. 2024, Medusa): x is accepted if p(x) > min(posterior_threshold, posterior_alpha * exp(-H(p))).
// The longest accepted path is taken, the likeliest of several; the token after it is drawn from p.
//
// synthetic: the place at each depth is accepted with a given rate, and one of its children taken, whatever they are.
//
// Random numbers are functions of seed and position, see RandomStream. Where guesses are drawn, where a text is cut
// into drafts says which of them decides a token: texts of equal seed may differ, their distribution does not.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/drafter.hpp"
#include "core/request.hpp"
#include "core/speculative_config.hpp"
#include "engine/sampling/sampler.hpp"
#include "engine/sampling/token_distribution.hpp"

namespace dculab::engine {

// The model's logits: row 0 predicts what follows the last token, row i + 1 what follows node i. [vocab_size]
using LogitsOfRow = std::function<std::span<const float>(int row)>;

class DraftJudge {
 public:
  explicit DraftJudge(SpeculativeConfig config) : config_(std::move(config)) {}

  // `position` of the first new token. Throws InputError for logits that are not finite. Precondition: draft.nodes are
  // as DraftTree says; where it has probabilities, nodes have a probability above 0.
  [[nodiscard]] Verdict judge(const DraftTree& draft, const SamplingParams& params, std::uint64_t position,
                              const LogitsOfRow& logits);

 private:
  struct Case;  // a draft, and how far the verdict has got
  void follow_model(Case& asked);
  void reject_recursively(Case& asked);
  [[nodiscard]] int test_children(const Case& asked, std::span<const int> children);
  void take_typical(Case& asked);
  [[nodiscard]] std::vector<double> typical_likelihoods(const Case& asked);
  void take_synthetic(Case& asked);
  void choose_last(Case& asked);

  SpeculativeConfig config_;
  Sampler sampler_;
  TokenDistribution distribution_;
  std::vector<double> target_, draft_;  // p and q. [vocab_size]
};

}  // namespace dculab::engine

#include "engine/sampling/draft_acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace dculab::engine {
namespace {

// Makes the sum 1. False, and nothing changed, where nothing is left.
bool normalise(std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(sum > 0)) return false;
  for (double& weight : weights) weight /= sum;
  return true;
}

double entropy_of(std::span<const double> probabilities) {
  double entropy = 0;
  for (const double probability : probabilities)
    if (probability > 0) entropy -= probability * std::log(probability);
  return entropy;
}

}  // namespace

struct DraftJudge::Case {
  const DraftTree& draft;
  const SamplingParams& params;
  std::uint64_t first_position;
  const LogitsOfRow& logits;
  Verdict verdict{};

  [[nodiscard]] int last_node() const { return verdict.path.empty() ? DraftNode::kRoot : verdict.path.back(); }
  [[nodiscard]] std::uint64_t position() const { return first_position + verdict.path.size(); }
  [[nodiscard]] TokenId token(int node) const { return draft.nodes[static_cast<std::size_t>(node)].token; }

  void accept(int node) {
    verdict.path.push_back(node);
    verdict.tokens.push_back(token(node));
  }
};

Verdict DraftJudge::judge(const DraftTree& draft, const SamplingParams& params, std::uint64_t position,
                          const LogitsOfRow& logits) {
  Case asked{.draft = draft, .params = params, .first_position = position, .logits = logits};
  const RejectionSampleMethod method = config_.rejection_sample_method;
  if (method == RejectionSampleMethod::synthetic)
    take_synthetic(asked);
  else if (params.temperature > 0 && method == RejectionSampleMethod::typical)
    take_typical(asked);
  else if (params.temperature > 0 && !draft.probabilities.empty())
    reject_recursively(asked);
  else
    follow_model(asked);
  return std::move(asked.verdict);
}

void DraftJudge::choose_last(Case& asked) {
  asked.verdict.tokens.push_back(sampler_.sample(asked.logits(asked.last_node() + 1), asked.params, asked.position()));
}

void DraftJudge::follow_model(Case& asked) {
  while (true) {
    const std::vector<int> children = asked.draft.children(asked.last_node());
    choose_last(asked);
    const auto guess =
        std::ranges::find(children, asked.verdict.tokens.back(), [&](int node) { return asked.token(node); });
    if (guess == children.end()) return;
    asked.verdict.path.push_back(*guess);
  }
}

void DraftJudge::reject_recursively(Case& asked) {
  while (true) {
    const std::vector<int> children = asked.draft.children(asked.last_node());
    if (children.empty()) return choose_last(asked);
    distribution_.assign(asked.logits(asked.last_node() + 1), asked.params);
    distribution_.probabilities(target_);
    const int accepted = test_children(asked, children);
    if (accepted == DraftNode::kRoot) {
      asked.verdict.tokens.push_back(
          draw_from(target_, uniform(asked.params.seed, RandomStream::residual, asked.position())));
      return;
    }
    asked.accept(accepted);
  }
}

// The child that is accepted, or kRoot: then target_ is what is left of p.
int DraftJudge::test_children(const Case& asked, std::span<const int> children) {
  const std::size_t vocab_size = target_.size();
  const auto row = asked.draft.probabilities.begin() +
                   static_cast<std::ptrdiff_t>(static_cast<std::size_t>(children.front()) * vocab_size);
  draft_.assign(row, row + static_cast<std::ptrdiff_t>(vocab_size));
  normalise(draft_);
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    const auto token = static_cast<std::size_t>(asked.token(children[rank]));
    const double test = uniform(asked.params.seed, RandomStream::acceptance, asked.position(), static_cast<int>(rank));
    if (test * draft_[token] < target_[token]) return children[rank];
    std::ranges::transform(target_, draft_, target_.begin(), [](double p, double q) { return std::max(p - q, 0.0); });
    if (!normalise(target_)) return children[rank];  // p is q: only rounding can have rejected
    draft_[token] = 0;
    if (!normalise(draft_)) break;  // no other child can have been drawn
  }
  return DraftNode::kRoot;
}

void DraftJudge::take_typical(Case& asked) {
  const std::vector<double> likelihoods = typical_likelihoods(asked);
  const std::vector<int> depths = asked.draft.depths();
  int best = DraftNode::kRoot, depth = 0;
  for (int node = 0; node < asked.draft.num_tokens(); ++node) {
    const double likelihood = likelihoods[static_cast<std::size_t>(node)];
    if (likelihood == -std::numeric_limits<double>::infinity()) continue;
    const int deep = depths[static_cast<std::size_t>(node)];
    if (deep < depth || (deep == depth && likelihood <= likelihoods[static_cast<std::size_t>(best)])) continue;
    best = node;
    depth = deep;
  }
  for (int node = best; node != DraftNode::kRoot; node = asked.draft.nodes[static_cast<std::size_t>(node)].parent)
    asked.verdict.path.push_back(node);
  std::ranges::reverse(asked.verdict.path);
  for (const int node : asked.verdict.path) asked.verdict.tokens.push_back(asked.token(node));
  choose_last(asked);
}

// Of each node, the logarithm of the probability of its path; minus infinity where the path is not accepted.
std::vector<double> DraftJudge::typical_likelihoods(const Case& asked) {
  constexpr double kRejected = -std::numeric_limits<double>::infinity();
  std::vector<double> likelihoods(asked.draft.nodes.size(), kRejected);
  for (int parent = DraftNode::kRoot; parent < asked.draft.num_tokens(); ++parent) {
    const double before = parent == DraftNode::kRoot ? 0 : likelihoods[static_cast<std::size_t>(parent)];
    const std::vector<int> children = asked.draft.children(parent);
    if (before == kRejected || children.empty()) continue;
    distribution_.assign(asked.logits(parent + 1), asked.params);
    distribution_.probabilities(target_);
    const double needed =
        std::min(config_.posterior_threshold, config_.posterior_alpha * std::exp(-entropy_of(target_)));
    for (const int child : children) {
      const double probability = target_[static_cast<std::size_t>(asked.token(child))];
      if (probability > needed) likelihoods[static_cast<std::size_t>(child)] = before + std::log(probability);
    }
  }
  return likelihoods;
}

void DraftJudge::take_synthetic(Case& asked) {
  const std::vector<double>& rates = config_.synthetic_acceptance_rates;
  while (true) {
    const std::vector<int> children = asked.draft.children(asked.last_node());
    if (children.empty()) break;
    const double rate = rates[std::min(asked.verdict.path.size(), rates.size() - 1)];
    if (uniform(asked.params.seed, RandomStream::acceptance, asked.position()) >= rate) break;
    const double place = uniform(asked.params.seed, RandomStream::residual, asked.position());
    asked.accept(children[static_cast<std::size_t>(place * static_cast<double>(children.size()))]);
  }
  choose_last(asked);
}

}  // namespace dculab::engine

// Which experts a token goes to, and the rows of each expert.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/cpu/expert_kernels.hpp"
#include "kernels/cpu/for_each_token.hpp"
#include "kernels/cpu/preconditions.hpp"

namespace dculab::kernels::cpu {
namespace {

constexpr int kExpCost = 16;  // values of plain work that one std::exp is worth

// A candidate among equals: larger values come first, of equal ones the lower index.
struct Ranked {
  float value = std::numeric_limits<float>::infinity();
  int index = -1;

  [[nodiscard]] bool precedes(const Ranked& other) const {
    return value > other.value || (value == other.value && index < other.index);
  }
};

// The best of `count` candidates that come after `last`. The first of all comes after Ranked{}.
template <typename Value>
[[nodiscard]] Ranked next_best(int count, const Ranked& last, Value&& value) {
  Ranked best{-std::numeric_limits<float>::infinity(), count};
  for (int index = 0; index < count; ++index) {
    const Ranked candidate{value(index), index};
    if (candidate.precedes(best) && last.precedes(candidate)) best = candidate;
  }
  return best;
}

// From logits to scores.
class Scores {
 public:
  Scores(const RouterRule& rule, const float* logits) : sigmoids_(rule.scoring == RouterScoring::sigmoid) {
    if (sigmoids_) return;
    largest_ = *std::max_element(logits, logits + rule.num_experts);
    sum_ = 0;
    for (int expert = 0; expert < rule.num_experts; ++expert) sum_ += std::exp(logits[expert] - largest_);
  }

  [[nodiscard]] float operator()(float logit) const {
    return sigmoids_ ? 1.0F / (1.0F + std::exp(-logit)) : std::exp(logit - largest_) / sum_;
  }

 private:
  bool sigmoids_;
  float largest_ = 0, sum_ = 1;
};

// One token: its logits, what experts are chosen by, and where its choices go.
struct TokenRouter {
  const RouterRule& rule;
  const float* logits;  // [num_experts]
  const float* values;  // [num_experts]: the logits, or scores plus the correction bias
  bool sums_best_two;   // of a group
  std::int32_t* experts;
  float* weights;

  void choose() const {
    Ranked worst_group{-std::numeric_limits<float>::infinity(), rule.num_groups};
    if (rule.num_groups > 1) {
      Ranked last;
      for (int i = 0; i < rule.groups_per_token; ++i)
        last = next_best(rule.num_groups, last, [this](int group) { return group_value(group); });
      worst_group = last;
    }
    Ranked last;
    for (int i = 0; i < rule.experts_per_token; ++i) {
      last = best_of_groups(worst_group, last);
      experts[i] = last.index;
    }
  }

  void weigh(const Scores& scores) const {
    constexpr float kTiny = 1e-20F;  // transformers' own, against a sum of zeros
    float sum = 0;
    for (int i = 0; i < rule.experts_per_token; ++i) sum += weights[i] = scores(logits[experts[i]]);
    const float divisor = rule.normalized ? sum + kTiny : 1.0F;
    for (int i = 0; i < rule.experts_per_token; ++i) weights[i] = weights[i] / divisor * rule.scaling;
  }

 private:
  [[nodiscard]] float group_value(int group) const {
    const float* first = values + std::ptrdiff_t{group} * rule.group_size();
    Ranked best = next_best(rule.group_size(), Ranked{}, [first](int index) { return first[index]; });
    if (!sums_best_two || rule.group_size() == 1) return best.value;
    return best.value + next_best(rule.group_size(), best, [first](int index) { return first[index]; }).value;
  }

  // The best expert after `last` in the groups up to the worst that was chosen.
  [[nodiscard]] Ranked best_of_groups(const Ranked& worst_group, const Ranked& last) const {
    if (rule.num_groups == 1) return next_best(rule.num_experts, last, [this](int expert) { return values[expert]; });
    Ranked best{-std::numeric_limits<float>::infinity(), rule.num_experts};
    for (int group = 0; group < rule.num_groups; ++group) {
      if (worst_group.precedes({group_value(group), group})) continue;
      for (int expert = group * rule.group_size(); expert < (group + 1) * rule.group_size(); ++expert) {
        const Ranked candidate{values[expert], expert};
        if (candidate.precedes(best) && last.precedes(candidate)) best = candidate;
      }
    }
    return best;
  }
};

// A counting sort: by expert, and of an expert by token.
void sort_rows(const RouteTokensArgs& args) {
  const ExpertChoices& choices = args.choices;
  const int rows = args.num_tokens * args.rule.experts_per_token;
  std::int32_t* const next = choices.first_rows + 1;  // of each expert, while rows are dealt out
  std::fill_n(choices.first_rows, args.rule.num_experts + 1, 0);
  for (int choice = 0; choice < rows; ++choice)
    if (const int expert = choices.experts[choice]; expert + 1 < args.rule.num_experts) ++next[expert + 1];
  for (int expert = 1; expert < args.rule.num_experts; ++expert) next[expert] += next[expert - 1];
  for (int choice = 0; choice < rows; ++choice) {
    const std::int32_t row = next[choices.experts[choice]]++;
    choices.choice_rows[choice] = row;
    choices.row_tokens[row] = choice / args.rule.experts_per_token;
  }
}

void check(const RouteTokensArgs& args) {
  const RouterRule& rule = args.rule;
  require(rule.num_experts > 0 && rule.num_groups > 0 && rule.num_experts % rule.num_groups == 0 &&
              rule.groups_per_token > 0 && rule.groups_per_token <= rule.num_groups && rule.experts_per_token > 0 &&
              rule.experts_per_token <= rule.groups_per_token * rule.group_size(),
          "route_tokens", "a token cannot be given so many experts");
}

}  // namespace

void route_tokens(ThreadPool& threads, Workspace& workspace, const RouteTokensArgs& args) {
  check(args);
  const RouterRule& rule = args.rule;
  const bool corrected = args.correction_bias != nullptr;
  float* const values = workspace.floats(
      corrected ? static_cast<std::size_t>(args.num_tokens) * static_cast<std::size_t>(rule.num_experts) : 0);
  std::atomic<int> bad_tokens{0};
  for_each_token(threads, args.num_tokens, std::int64_t{rule.num_experts} * kExpCost, [&](int token) {
    const std::ptrdiff_t first = std::ptrdiff_t{token} * rule.num_experts;
    const std::ptrdiff_t choice = std::ptrdiff_t{token} * rule.experts_per_token;
    const float* const logits = args.logits + first;
    const TokenRouter router{rule,
                             logits,
                             corrected ? values + first : logits,
                             corrected,
                             args.choices.experts + choice,
                             args.choices.weights + choice};
    if (!std::all_of(logits, logits + rule.num_experts, [](float logit) { return std::isfinite(logit); })) {
      ++bad_tokens;
      for (int i = 0; i < rule.experts_per_token; ++i) router.experts[i] = i, router.weights[i] = 0.0F;
      return;
    }
    const Scores scores(rule, logits);
    for (int expert = 0; corrected && expert < rule.num_experts; ++expert)
      values[first + expert] = scores(logits[expert]) + args.correction_bias[expert];
    router.choose();
    router.weigh(scores);
  });
  *args.bad_tokens = bad_tokens;
  sort_rows(args);
}

}  // namespace dculab::kernels::cpu

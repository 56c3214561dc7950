// Mixtures of experts: which experts a token goes to, their products, and the weighted sum of what they give.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "kernels/reference/reference_kernels.hpp"
#include "kernels/reference/stored_value.hpp"

namespace dculab::kernels::reference {
namespace {

[[nodiscard]] std::size_t size(int count) { return static_cast<std::size_t>(count); }

[[nodiscard]] double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// The `count` indices with the largest values, largest first; of equal ones the lower index first.
[[nodiscard]] std::vector<int> best(const std::vector<double>& values, int count) {
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return values[size(a)] > values[size(b)]; });
  order.resize(size(count));
  return order;
}

// What a router makes of one token's logits.
class TokenRouter {
 public:
  TokenRouter(const RouteTokensArgs& args, int token)
      : args_(args), rule_(args.rule), logits_(args.logits + std::ptrdiff_t{token} * args.rule.num_experts) {}

  [[nodiscard]] std::vector<int> choose() const {
    std::vector<double> values;
    for (int expert = 0; expert < rule_.num_experts; ++expert)
      values.push_back(args_.correction_bias == nullptr ? logits_[expert]
                                                        : score(expert) + args_.correction_bias[expert]);
    if (rule_.num_groups > 1) drop_other_groups(values);
    return best(values, rule_.experts_per_token);
  }

  [[nodiscard]] std::vector<double> weights(const std::vector<int>& chosen) const {
    constexpr double kTiny = 1e-20;  // transformers' own, against a sum of zeros
    std::vector<double> result;
    for (const int expert : chosen) result.push_back(score(expert));
    const double sum = std::accumulate(result.begin(), result.end(), 0.0) + kTiny;
    for (double& weight : result) weight *= rule_.scaling / (rule_.normalized ? sum : 1.0);
    return result;
  }

 private:
  [[nodiscard]] double score(int expert) const {
    if (rule_.scoring == RouterScoring::sigmoid) return sigmoid(logits_[expert]);
    double total = 0;
    for (int other = 0; other < rule_.num_experts; ++other) total += std::exp(double{logits_[other]} - logits_[expert]);
    return 1.0 / total;
  }

  void drop_other_groups(std::vector<double>& values) const {
    std::vector<double> groups;
    for (auto first = values.begin(); first != values.end(); first += rule_.group_size()) {
      std::vector<double> group(first, first + rule_.group_size());
      std::ranges::sort(group, std::greater());
      const bool by_two = args_.correction_bias != nullptr && rule_.group_size() > 1;
      groups.push_back(group[0] + (by_two ? group[1] : 0.0));
    }
    const std::vector<int> kept = best(groups, rule_.groups_per_token);
    for (int expert = 0; expert < rule_.num_experts; ++expert)
      if (!std::ranges::count(kept, expert / rule_.group_size())) values[size(expert)] = -INFINITY;
  }

  const RouteTokensArgs& args_;
  const RouterRule& rule_;
  const float* logits_;
};

// Rows by expert, then by token.
void sort_rows(const RouteTokensArgs& args) {
  const ExpertChoices& choices = args.choices;
  const int per_token = args.rule.experts_per_token;
  std::int32_t row = 0;
  for (int expert = 0; expert < args.rule.num_experts; ++expert) {
    choices.first_rows[expert] = row;
    for (int choice = 0; choice < args.num_tokens * per_token; ++choice) {
      if (choices.experts[choice] != expert) continue;
      choices.row_tokens[row] = choice / per_token;
      choices.choice_rows[choice] = row++;
    }
  }
  choices.first_rows[args.rule.num_experts] = row;
}

}  // namespace

void route_tokens(const RouteTokensArgs& args) {
  const int per_token = args.rule.experts_per_token, num_experts = args.rule.num_experts;
  *args.bad_tokens = 0;
  for (int token = 0; token < args.num_tokens; ++token) {
    const float* logits = args.logits + std::ptrdiff_t{token} * num_experts;
    const bool bad = !std::all_of(logits, logits + num_experts, [](float logit) { return std::isfinite(logit); });
    *args.bad_tokens += bad ? 1 : 0;
    const TokenRouter router(args, token);
    std::vector<int> chosen(size(per_token));
    std::iota(chosen.begin(), chosen.end(), 0);
    if (!bad) chosen = router.choose();
    const std::vector<double> weights = router.weights(chosen);
    for (int i = 0; i < per_token; ++i) {
      args.choices.experts[token * per_token + i] = chosen[size(i)];
      args.choices.weights[token * per_token + i] = static_cast<float>(weights[size(i)]);
    }
  }
  sort_rows(args);
}

void expert_matmul(const ExpertMatmulArgs& args) {
  float* y = args.y;
  for (int expert = 0; expert < args.num_experts; ++expert)
    for (int row = args.first_rows[expert]; row < args.first_rows[expert + 1]; ++row) {
      MatmulArgs one;
      one.m = 1, one.k = args.k, one.activations = args.activations;
      one.x = args.x + std::ptrdiff_t{args.row_tokens == nullptr ? row : args.row_tokens[row]} * args.k;
      one.y = y;
      one.num_weights = args.num_weights;
      for (std::size_t i = 0; i < size(args.num_weights); ++i) {
        one.weights[i] = args.weights[i][expert];
        if (args.biases[i] != nullptr) one.biases[i] = static_cast<const float*>(args.biases[i][expert].data);
        y += one.weights[i].rows;
      }
      matmul(one);
    }
}

void combine_experts(const CombineExpertsArgs& args) {
  for (int token = 0; token < args.num_tokens; ++token) {
    double gate = args.has_shared ? 1 : 0;
    if (args.shared_gate.data != nullptr) {
      double sum = 0;
      for (std::size_t i = 0; i < size(args.gate_width); ++i)
        sum += double{args.x[size(token) * size(args.gate_width) + i]} *
               load_value(args.shared_gate.data, args.shared_gate.dtype, i);
      gate = sigmoid(sum);
    }
    for (int i = 0; i < args.width; ++i) {
      float& out = args.out[std::ptrdiff_t{token} * args.width + i];
      double sum = gate == 0 ? 0 : gate * out;
      for (int choice = token * args.experts_per_token; choice < (token + 1) * args.experts_per_token; ++choice)
        sum += double{args.weights[choice]} * args.y[std::ptrdiff_t{args.choice_rows[choice]} * args.width + i];
      out = static_cast<float>(sum);
    }
  }
}

}  // namespace dculab::kernels::reference

#include "engine/executors/expert_routing.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "core/error.hpp"

namespace dculab::engine {

kernels::RouterRule router_rule(const Experts& experts) {
  const bool softmax = experts.scoring == ExpertScoring::softmax;
  return {.num_experts = experts.num_experts,
          .experts_per_token = experts.num_experts_per_tok,
          .scoring = softmax ? kernels::RouterScoring::softmax : kernels::RouterScoring::sigmoid,
          .normalized = experts.normalized,
          .scaling = static_cast<float>(experts.scaling),
          .num_groups = experts.num_groups,
          .groups_per_token = experts.groups_per_tok};
}

void require_routed(int bad_tokens, int layer) {
  if (bad_tokens > 0)
    throw InputError("layer " + std::to_string(layer) + ": the router gives " + std::to_string(bad_tokens) +
                     " of the step's tokens a logit that is NaN or infinite, so that they have no experts "
                     "(the checkpoint is damaged, or its activations overflow)");
}

ExpertHistogram take(ExpertHistogram& histogram) {
  ExpertHistogram taken = histogram;
  for (std::vector<std::int64_t>& counts : histogram.choices) std::ranges::fill(counts, 0);
  histogram.layer_steps = histogram.touched_experts = 0;
  return taken;
}

ExpertRouting::ExpertRouting(const ModelShape& shape) {
  int most_experts = 0;
  for (const LayerKind& kind : shape.kinds) {
    if (!kind.experts) continue;
    most_experts = std::max(most_experts, kind.experts->num_experts);
    most_per_token_ = std::max(most_per_token_, kind.experts->num_experts_per_tok);
  }
  first_rows_.resize(static_cast<std::size_t>(most_experts) + 1);
  tokens_.resize(static_cast<std::size_t>(most_experts));
  for (int layer = 0; layer < shape.num_layers(); ++layer) {
    const auto& experts = shape.layer(layer).experts;
    histogram_.choices.emplace_back(experts ? static_cast<std::size_t>(experts->num_experts) : 0);
  }
}

void ExpertRouting::make_room(int tokens) {
  const auto rows = static_cast<std::size_t>(tokens) * static_cast<std::size_t>(most_per_token_);
  if (experts_.size() >= rows) return;
  for (std::vector<std::int32_t>* each : {&experts_, &choice_rows_, &row_tokens_}) each->resize(rows);
  weights_.resize(rows);
}

kernels::ExpertChoices ExpertRouting::choices() {
  return {.experts = experts_.data(),
          .weights = weights_.data(),
          .choice_rows = choice_rows_.data(),
          .row_tokens = row_tokens_.data(),
          .first_rows = first_rows_.data()};
}

void ExpertRouting::count(int layer, const Experts& experts) {
  const std::span<std::int64_t> tokens = std::span(tokens_).first(static_cast<std::size_t>(experts.num_experts));
  for (std::size_t expert = 0; expert < tokens.size(); ++expert)
    tokens[expert] = first_rows_[expert + 1] - first_rows_[expert];
  histogram_.add(static_cast<std::size_t>(layer), tokens);
}

void ExpertRouting::count(int layer, const Experts& experts, std::span<const std::int32_t> chosen) {
  const std::span<std::int64_t> tokens = std::span(tokens_).first(static_cast<std::size_t>(experts.num_experts));
  std::ranges::fill(tokens, 0);
  for (const std::int32_t expert : chosen) ++tokens[static_cast<std::size_t>(expert)];
  histogram_.add(static_cast<std::size_t>(layer), tokens);
}

ExpertHistogram ExpertRouting::take_histogram() { return take(histogram_); }

}  // namespace dculab::engine

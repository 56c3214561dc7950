#include "sim/study/measured_choices.hpp"

#include <map>
#include <string>
#include <string_view>

#include "sim/calibration/fit.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] std::string workload_of(const TraceStep& step) {
  const ModelShape& model = step.model;
  std::string text;
  const auto add = [&text](std::string_view part) { text.append(part).append(" "); };
  add(name(step.options.kv_cache_dtype));
  add(name(step.options.weights.dtype));
  add(std::to_string(step.batch.cold_share));
  for (const int size : {model.hidden_size, model.num_layers(), model.vocab_size}) add(std::to_string(size));
  for (const LayerKind& kind : model.kinds) {
    const Heads heads = kind.cached_heads().value_or(Heads{});
    for (const int size : {heads.num_attention_heads, heads.head_dim, kind.mlp.intermediate_size})
      add(std::to_string(size));
  }
  for (const SequenceSlice& slice : step.batch.sequences)
    for (const int tokens : {slice.num_new_tokens, slice.context_tokens()}) add(std::to_string(tokens));
  return text;
}

}  // namespace

MeasuredChoices measured_choices(const Machine& machine, std::span<const TraceStep> steps) {
  const std::vector<PredictedMeasured> pairs = compare_steps(machine, steps);
  std::map<std::string, std::size_t> workloads;
  MeasuredChoices choices;
  for (std::size_t row = 0; row < steps.size(); ++row) {
    const std::size_t workload = workloads.try_emplace(workload_of(steps[row]), workloads.size()).first->second;
    const Choice choice{steps[row].model.heads().num_key_value_heads, steps[row].options.block_size};
    choices.predicted.push_back({choice, workload, pairs[row].predicted});
    choices.measured.push_back({choice, workload, pairs[row].measured});
  }
  return choices;
}

std::optional<Regret> decision_regret(const MeasuredChoices& choices) {
  if (rank_choices(choices.measured).size() < 2) return std::nullopt;
  return decision_regret(choices.predicted, choices.measured);
}

}  // namespace dculab::sim

#include "present/values/expert_report.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string bound_from(const std::optional<sim::ExpertBatch>& batch) {
  if (!batch) return "memory-bound at every batch";
  const std::string widening =
      batch->widens_longer ? "; with fewer, widening their weights takes longer than reading them" : "";
  return "compute-bound from " + counted(batch->tokens, "token") + " a step (" + number(batch->mean_rows) +
         " rows an expert, " + number(batch->longest_rows) + " the most" + widening + ")";
}

}  // namespace

std::vector<std::string> expert_columns() { return {"experts/step", "hottest"}; }

Row expert_cells(const ExpertHistogram& experts) {
  if (experts.is_empty()) return {"-", "-"};
  return {number(experts.distinct_experts()), percent(experts.hottest_share())};
}

std::string expert_heading() {
  return "experts/step: distinct experts of a layer that a step touched; hottest: the share of the most chosen expert "
         "in the choices of its layer; means over the layers";
}

std::string compute_bound_text(const sim::Machine& machine, const ModelShape& model, const EngineOptions& options) {
  const auto from = [&](const ExpertLoad& load) {
    EngineOptions loaded = options;
    loaded.expert_load = load;
    return bound_from(sim::compute_bound_batch(machine, model, loaded));
  };
  const ExpertLoad even;
  if (options.expert_load == even) return "experts' products are " + from(even);
  return "experts' products are " + from(even) + " with even loads, " + from(options.expert_load) +
         " with the load asked for";
}

}  // namespace dculab::present

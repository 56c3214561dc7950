#include "study/evaluate/variant_cost.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/study/offline_run.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/server.hpp"

namespace dculab::study {
namespace {

void cost_step(VariantCost& cost, const config::Scenario& scenario, const sim::Machine& machine) {
  const Batch batch = resolve_batch(scenario.workload, cost.model, cost.options);
  cost.batch = static_cast<int>(batch.sequences.size());
  const int context = batch.sequences.front().context_tokens();
  cost.has_room = sim::capacity(machine, cost.model, cost.options, context).max_sequences >= cost.batch;
  cost.measured_run.steps.push_back({plan_step(cost.model, cost.options, batch), 1});
  const Seconds time = sim::price_run(machine, cost.measured_run);
  cost.figures["step_time"] = time.value();
  cost.figures["tokens_per_second"] = static_cast<double>(batch.num_tokens()) / time.value();
}

void cost_run(VariantCost& cost, const config::Scenario& scenario, const sim::Machine& machine) {
  const config::Workload& work = scenario.workload;
  const auto prompt_tokens = static_cast<int>(work.served.prompt.center);
  const auto output_tokens = static_cast<int>(work.served.output.center);
  if (prompt_tokens + output_tokens > cost.model.max_position_embeddings)
    throw InputError(scenario.file, "workload: " + std::to_string(prompt_tokens + output_tokens) +
                                        " tokens a request are more than " + cost.model.name +
                                        " allows (max_position_embeddings = " +
                                        std::to_string(cost.model.max_position_embeddings) + ")");
  const auto walked =
      work.kv_padding == config::KvPadding::none ? sim::WalkedBlocks::own : sim::WalkedBlocks::of_longest;
  sim::OfflineRun run =
      sim::offline_run(machine, cost.model, cost.options, {work.served.requests, prompt_tokens, output_tokens, walked});
  cost.batch = run.batch;
  cost.batch_limit = sim::name(run.limit);
  if (!cost.fits()) return;
  cost.measured_run = std::move(run.measured_run);
  cost.figures = {{"total_time", run.total_time.value()},
                  {"latency_mean", run.latency_mean.value()},
                  {"requests_per_second", run.requests_per_second},
                  {"tokens_per_second", run.tokens_per_second},
                  {"output_tokens_per_second", run.output_tokens_per_second}};
}

void cost_service(VariantCost& cost, const config::Scenario& scenario, const sim::Machine& machine) {
  const RequestWorkload& work = scenario.workload.served;
  refuse_deployment(scenario, problems(scenario.deployment, machine, cost.model, cost.options));
  cost.service =
      sim::service_run(machine, cost.model, cost.options, scenario.deployment,
                       {work.requests, static_cast<int>(work.prompt.center), static_cast<int>(work.output.center)});
  const sim::ServicePool &prefill = cost.service->prefill, &decode = cost.service->decode;
  cost.batch = prefill.batch > 0 ? decode.batch : 0;
  cost.batch_limit = sim::name(decode.limit);
  if (!cost.fits()) return;
  cost.measured_run = decode.measured_run;
  cost.shares = decode.terms;
  cost.shares.erase("hidden exchange");
  cost.figures = {{"step_time", decode.steps.value()},
                  {"input_tokens_per_second_per_node", prefill.tokens_per_second},
                  {"output_tokens_per_second_per_node", decode.tokens_per_second}};
}

// Whose time a figure follows from.
[[nodiscard]] const sim::MeasuredRun& measured_run_of(const VariantCost& cost, const std::string& metric) {
  return cost.service && metric.starts_with("input") ? cost.service->prefill.measured_run : cost.measured_run;
}

}  // namespace

bool is_run_by(const VariantCost& cost, const sim::Machine& machine) {
  return cost.machine.name == machine.name && cost.machine.stack.name == machine.stack.name;
}

VariantCost cost_of(const config::Scenario& scenario, const sim::Machine& machine) {
  VariantCost cost;
  cost.machine = machine;
  cost.model = resolve_model(scenario);
  cost.options = resolve_options(scenario, cost.model, machine);
  if (scenario.workload.kind == config::WorkloadKind::step)
    cost_step(cost, scenario, machine);
  else if (has_pools(scenario))
    cost_service(cost, scenario, machine);
  else
    cost_run(cost, scenario, machine);
  cost.refused = refused_kv(scenario.deployment, machine, cost.model, cost.options);
  if (cost.fits() && !cost.service) cost.shares = sim::run_shares(machine, cost.measured_run);
  return cost;
}

double change_of(const std::string& metric, const VariantCost& variant, const VariantCost& baseline) {
  return variant.figures.at(metric) / baseline.figures.at(metric) - 1;
}

FigureInterval interval_of(const VariantCost& cost, const std::string& metric) {
  const sim::MeasuredRun& measured_run = measured_run_of(cost, metric);
  const Seconds time = sim::price_run(cost.machine, measured_run);
  const sim::Confidence trust = sim::run_confidence(cost.machine, measured_run, time);
  const double figure = cost.figures.at(metric);
  if (metric.find("per_second") != std::string::npos)
    return {figure * (time / trust.high), figure * (time / trust.low)};
  return {figure * (trust.low / time), figure * (trust.high / time)};
}

std::optional<FigureInterval> interval_of_change(const VariantCost& baseline, const VariantCost& variant,
                                                 const std::string& metric) {
  const std::optional<double> factor = sim::ratio_factor({baseline.machine, measured_run_of(baseline, metric)},
                                                         {variant.machine, measured_run_of(variant, metric)});
  if (!factor) return std::nullopt;
  const double ratio = variant.figures.at(metric) / baseline.figures.at(metric);
  return FigureInterval{ratio / *factor - 1, ratio * *factor - 1};
}

Seconds VariantCost::shared_time() const {
  Seconds total;
  for (const auto& [cause, time] : shares) total += time;
  return total;
}

double attention_share(const VariantCost& cost) {
  if (!cost.fits()) return 0;
  Seconds attention;
  for (const auto& [cause, time] : cost.shares)
    if (cause.starts_with("attention")) attention += time;
  return attention / cost.shared_time();
}

std::string main_metric(const config::Scenario& scenario) {
  if (scenario.workload.kind == config::WorkloadKind::step) return "step_time";
  return scenario.deployment.is_disaggregated() ? "output_tokens_per_second_per_node" : "output_tokens_per_second";
}

}  // namespace dculab::study

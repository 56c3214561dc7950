#include "study/scenario/serving_scenario.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/scenario/idle_axes.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

// An objective about what a simulation does not measure would choose nothing, and not say why.
void refuse_other_metrics(const config::Scenario& scenario) {
  const auto refuse = [&scenario](const std::string& key, const std::string& metric) {
    for (const char* other : {"step_time", "kv_bytes", "max_sequences"})
      if (metric == other)
        throw InputError(scenario.file, key + ": " + metric + " is no metric of served requests; take goodput, " +
                                            "output_tokens_per_second, ttft_p99, ...");
  };
  const ServiceLevel& slo = scenario.slo;
  const auto is_swept = [&scenario](std::string_view prefix) {
    return std::ranges::any_of(scenario.sweep, [prefix](const auto& axis) { return axis.key.starts_with(prefix); });
  };
  const bool has_slo = slo.ttft || slo.tpot || slo.latency || slo.slowdown || is_swept("slo");
  const bool has_slowdown = slo.slowdown || is_swept("slo.slowdown");
  const auto check = [&](const std::string& key, const std::string& metric) {
    refuse(key, metric);
    if ((metric == "goodput" || metric == "share_within_slo") && !has_slo)
      throw InputError(scenario.file, key + ": " + metric + " counts what meets a service level; give slo");
    if (metric.starts_with("slowdown_") && !has_slowdown)
      throw InputError(scenario.file, key + ": " + metric + " compares with a request alone; give slo.slowdown");
  };
  if (scenario.objective.metric != config::Objective{}.metric) check("objective", scenario.objective.metric);
  for (const config::Constraint& constraint : scenario.objective.subject_to)
    check("objective.subject_to", constraint.metric);
  for (const config::Aim& aim : scenario.pareto) check("pareto", aim.metric);
  for (const config::Condition& condition : scenario.constraints)
    for (const std::string& name : condition.names()) check("constraints", name);
}

}  // namespace

void refuse_unserved(const config::Scenario& scenario) {
  if (scenario.workload.kind != config::WorkloadKind::serving)
    throw InputError(scenario.file,
                     "workload: has no requests to serve; give workload.requests, prompt_tokens and "
                     "output_tokens, or ask `dculab study` for a single step");
  if (scenario.compare || scenario.accuracy)
    throw InputError(scenario.file, "compare and accuracy belong to `dculab study`");
  refuse_other_metrics(scenario);
}

void refuse_unrecommended(const config::Scenario& scenario) {
  if (scenario.workload.kind != config::WorkloadKind::serving)
    throw InputError(scenario.file,
                     "workload: limits are chosen for requests; give workload.requests, prompt_tokens "
                     "and output_tokens instead of a step");
  if (scenario.deployment.is_disaggregated() || scenario.deployment.kv_store)
    refuse_deployment(scenario, {"settings are recommended for replicas that prefill and decode; leave pools and "
                                 "kv_store out, or ask `dculab study`"});
  if (scenario.compare) throw InputError(scenario.file, "compare: variants are weighed by `dculab study`; remove it");
  for (const config::SweepAxis& axis : scenario.sweep) {
    const bool decided = axis.key == "model.num_key_value_heads" || axis.key.starts_with("kv_cache.") ||
                         axis.key == "attention.partition_tokens" || axis.key.starts_with("engine.max_num_");
    if (!decided)
      throw InputError(scenario.file,
                       "sweep." + axis.key + ": give one value, --set " + axis.key + "=VALUE; sweeps are for `study`");
  }
}

config::Scenario read_with(const std::string& name, const LoadQuestion& question) {
  const std::string file = name.empty() ? kCommandLine : find_scenario(name).string();
  config::Scenario scenario = config::read_scenario(file, document_of(name, question));
  refuse_written_inputs(scenario);
  return scenario;
}

config::Scenario read_serving_scenario(const std::string& name, const LoadQuestion& question) {
  config::Scenario scenario = read_with(name, question);
  const std::string& file = scenario.file;
  refuse_idle_axes(scenario);
  refuse_unserved(scenario);
  if (!scenario.constraints.empty())
    throw InputError(
        file, "constraints: belong to a search, `dculab study`; objective.subject_to limits what is chosen here");
  if (!scenario.choose.empty()) throw InputError(file, "choose: belongs to `dculab study`; leave it out");
  if (!scenario.then.empty()) throw InputError(file, "then: belongs to `dculab study`; give all scenarios to simulate");
  return scenario;
}

std::string choices_text(const config::SweepPoint& point) {
  std::string text;
  for (const auto& [key, value] : point.choices) text += (text.empty() ? "" : ", ") + axis_title(key) + " " + value;
  return text;
}

void refuse_machine_axes(const config::Scenario& scenario, const std::string& instead) {
  for (const config::SweepAxis& axis : scenario.sweep)
    if (axis.key == "machine" || axis.key.starts_with("machine."))
      throw InputError(scenario.file, "sweep." + axis.key + ": " + instead);
}

}  // namespace dculab::study

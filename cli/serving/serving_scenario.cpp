#include "cli/serving/serving_scenario.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "study/scenario/axis_title.hpp"
#include "cli/scenario/idle_axes.hpp"
#include "cli/serving/measured_serving.hpp"
#include "core/error.hpp"
#include "model/few_heads.hpp"
#include "sim/hardware/process_share.hpp"
#include "sim/memory/capacity.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::cli {
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

// What the engine here runs is a CPU's plan.
void require_same(const sim::Machine& machine, const config::Scenario& scenario, const std::string& remedy) {
  if (machine.kind != lower::DeviceKind::cpu)
    throw InputError("--measure", "runs this machine's CPU engine, and " + machine.name + " is a GPU; " + remedy);
  const int threads = scenario.measure.threads > 0 ? scenario.measure.threads : machine.compute_units;
  if (threads != machine.compute_units)
    throw InputError("--measure", "measure.threads is " + std::to_string(threads) + ", and " + machine.name + " has " +
                                      std::to_string(machine.compute_units) + " cores: leave it out");
  if (const unsigned cores = std::thread::hardware_concurrency(); cores > 0 && threads > static_cast<int>(cores))
    throw InputError("--measure", machine.name + " has " + std::to_string(threads) + " cores, this machine " +
                                      std::to_string(cores) + "; " + remedy);
  if (!scenario.model.overrides.empty())
    throw InputError("--measure", "runs the model as its folder has it; leave changes of its shape out");
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

config::Scenario read_serving_scenario(const std::string& name, const std::vector<std::string>& set) {
  std::vector<config::Override> overrides;
  for (const std::string& change : set) overrides.push_back(config::parse_override(change));
  const std::string file = study::find_scenario(name).string();
  config::Scenario scenario = config::read_scenario_file(file, overrides);
  study::refuse_written_inputs(scenario);
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
  for (const auto& [key, value] : point.choices) text += (text.empty() ? "" : ", ") + study::axis_title(key) + " " + value;
  return text;
}

void refuse_machine_axes(const config::Scenario& scenario, const std::string& instead) {
  for (const config::SweepAxis& axis : scenario.sweep)
    if (axis.key == "machine" || axis.key.starts_with("machine."))
      throw InputError(scenario.file, "sweep." + axis.key + ": " + instead);
}

void make_measurable(sim::SimulatedServer& server, const config::Scenario& scenario, const std::string& remedy) {
  if (server.options.speculative_config.enabled())
    throw InputError("--measure", "serves without drafts; leave engine.speculative_config out");
  require_same(server.machine, scenario, remedy);
  const int replicas = replicas_here(scenario, server.options, "--measure").replicas();
  if (replicas > server.machine.compute_units)
    throw InputError("--measure", std::to_string(replicas) + " replicas do not get a core each of " +
                                      server.machine.name + ", which has " +
                                      std::to_string(server.machine.compute_units));
  server.machine = sim::process_share(server.machine, replicas);
  sim::DraftMemory beside;
  if (server.few_heads) beside.weights = few_heads_footprint(server.model, *server.few_heads, server.options.weights);
  const std::int64_t fit = sim::capacity(server.machine, server.model, server.options, 1, beside).num_blocks;
  const std::int64_t longest = server.model.max_position_embeddings / server.options.block_size + 1;
  server.num_blocks =
      static_cast<int>(std::min<std::int64_t>({fit, longest * server.options.max_num_seqs, kMostBlocks}));
}

}  // namespace dculab::cli

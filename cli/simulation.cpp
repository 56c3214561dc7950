#include "cli/simulation.hpp"

#include <algorithm>
#include <functional>
#include <thread>

#include "cli/measured_serving.hpp"
#include "cli/predicted_study.hpp"
#include "cli/request_workload.hpp"
#include "cli/resolve.hpp"
#include "cli/serving_report.hpp"
#include "core/error.hpp"
#include "sim/memory/capacity.hpp"

namespace dculab::cli {
namespace {

// What the engine here runs is a CPU's plan.
void require_same(const sim::Machine& machine, const config::Scenario& scenario) {
  const std::string remedy = "; give --set machine=FILE with a calibrated file of this machine";
  if (machine.kind != sim::MachineKind::cpu)
    throw InputError("--measure", "runs this machine's CPU engine, and " + machine.name + " is a GPU" + remedy);
  const int threads = scenario.measure.threads > 0 ? scenario.measure.threads : machine.compute_units;
  if (threads != machine.compute_units)
    throw InputError("--measure", "measure.threads is " + std::to_string(threads) + ", and " + machine.name + " has " +
                                      std::to_string(machine.compute_units) + " cores: leave it out");
  if (const unsigned cores = std::thread::hardware_concurrency(); cores > 0 && threads > static_cast<int>(cores))
    throw InputError("--measure", machine.name + " has " + std::to_string(threads) + " cores, this machine " +
                                      std::to_string(cores) + remedy);
  if (!scenario.model.overrides.empty())
    throw InputError("--measure", "runs the model as its folder has it; leave changes of its shape out");
}

// KV blocks for both when the engine measures: those that every request at its longest needs, or fewer when
// gpu_memory_utilization of the machine's memory holds fewer.
[[nodiscard]] int blocks_for_both(const sim::SimulatedServer& server) {
  const std::int64_t fit = sim::capacity(server.machine, server.model, server.options, 1).num_blocks;
  const std::int64_t longest = server.model.max_position_embeddings / server.options.block_size + 1;
  return static_cast<int>(std::min(fit, longest * server.options.max_num_seqs));
}

[[nodiscard]] Json replicas_json(const sim::ServingRun& run) {
  Json json = Json::array();
  for (const sim::ReplicaRun& replica : run.replicas)
    json.push_back({{"role", name(replica.role)},
                    {"requests", replica.requests},
                    {"steps", replica.num_steps},
                    {"preemptions", replica.num_preemptions},
                    {"utilization", replica.busy / run.metrics.duration()}});
  return json;
}

[[nodiscard]] bool meets(const Simulation& simulation, const std::vector<config::Constraint>& constraints) {
  return std::ranges::all_of(constraints, [&](const config::Constraint& constraint) {
    const auto figure = simulation.figures.find(constraint.metric);
    if (figure == simulation.figures.end()) return false;
    return constraint.comparison == config::Comparison::at_most ? figure->second <= constraint.value
                                                                : figure->second >= constraint.value;
  });
}

}  // namespace

Simulation simulate_point(const config::SweepPoint& point, const std::string& machine_name, Serving serving,
                          config::ChromeTrace* chrome_trace) {
  const config::Scenario& scenario = point.scenario;
  const bool measured = serving != Serving::simulated;
  const ModelShape model = resolve_model(scenario);
  sim::Machine machine = resolve_machine(scenario, machine_name);
  const EngineOptions options = resolve_options(scenario, model, machine.kind);
  sim::SimulatedServer server{std::move(machine), model, options, std::nullopt, scenario.deployment};
  if (const auto found = problems(server); !found.empty()) throw InputError(scenario.file, found.front());
  if (scenario.slo.slowdown && options.kv_retention.policy != RetentionPolicy::all)
    throw InputError(scenario.file,
                     "slo.slowdown: what a request takes alone is known with kv_cache.retention all only");
  if (measured) {
    if (scenario.slo.slowdown)
      throw InputError("--measure", "does not run every request alone; leave slo.slowdown out");
    if (scenario.deployment.devices() != 1)
      throw InputError("--measure", "runs one engine on one machine; leave several devices out");
    require_same(server.machine, scenario);
    server.num_blocks = blocks_for_both(server);
  }
  std::function<void(const ServedStep&, int)> on_step;
  if (chrome_trace != nullptr)
    on_step = [chrome_trace](const ServedStep& step, int engine) { chrome_trace->add(step, engine); };
  Simulation done;
  done.machine = machine_name;
  done.choices = point.choices;
  done.slo = scenario.slo;
  const RequestWorkload workload = resolve_requests(scenario, model);
  done.run = sim::simulate(server, workload, scenario.slo, on_step);
  done.figures = serving_figures(done.run.metrics);
  done.figures["steps"] = static_cast<double>(done.run.num_steps);
  done.figures["output_tokens"] = static_cast<double>(done.run.metrics.output_tokens());
  if (measured) {
    const auto timing = serving == Serving::simulated_and_traced ? engine::OpTiming::on : engine::OpTiming::off;
    MeasuredServing run =
        measure({scenario, options, *server.num_blocks, server.machine.compute_units, timing}, workload);
    const engine::ServedWorkload& served = run.served;
    done.trace = std::move(run.trace);
    done.measured = serving_figures(served.metrics);
    done.measured["steps"] = static_cast<double>(served.num_steps);
    done.measured["output_tokens"] = static_cast<double>(served.metrics.output_tokens());
  }
  return done;
}

std::optional<std::size_t> best(const std::vector<Simulation>& all, const config::Objective& objective) {
  std::optional<std::size_t> found;
  for (std::size_t index = 0; index < all.size(); ++index) {
    if (!all[index].figures.contains(objective.metric) || !meets(all[index], objective.subject_to)) continue;
    const double figure = all[index].figures.at(objective.metric);
    const bool better =
        found && (objective.goal == config::Goal::maximize ? figure > all[*found].figures.at(objective.metric)
                                                           : figure < all[*found].figures.at(objective.metric));
    if (!found || better) found = index;
  }
  return found;
}

std::string label(const Simulation& simulation) {
  std::string text = simulation.machine;
  for (const auto& [key, value] : simulation.choices) text += ", " + axis_title(key) + " " + value;
  return text;
}

Json to_json(const Simulation& simulation) {
  const sim::ServingRun& run = simulation.run;
  Json json{{"machine", simulation.machine}, {"choices", Json::object()}};
  for (const auto& [key, value] : simulation.choices) json["choices"][key] = value;
  json["requests"] = run.metrics.requests();
  json["requests_within_slo"] = run.metrics.requests_within_objective();
  json["prompt_tokens"] = run.metrics.prompt_tokens();
  json["cached_prompt_tokens"] = run.metrics.cached_tokens();
  json["output_tokens"] = run.metrics.output_tokens();
  for (const auto& [metric, figure] : simulation.figures) json[metric] = figure;
  json["steps"] = run.num_steps;
  json["busy_seconds"] = run.busy.value();
  json["preemptions"] = run.num_preemptions;
  if (run.swaps.preemptions > 0)
    json["swaps"] = {{"preemptions", run.swaps.preemptions},
                     {"bytes_out", run.swapped_out.value()},
                     {"bytes_in", run.swapped_in.value()},
                     {"seconds", run.time_by_bound.at("swap").value()}};
  if (run.replicas.size() > 1) json["replicas"] = replicas_json(run);
  json["num_blocks"] = run.num_blocks;
  json["most_used_blocks"] = run.timeline.most_used_blocks();
  for (const auto& [bound, time] : run.time_by_bound) json["seconds_by_bound"][bound] = time.value();
  if (!simulation.measured.empty()) json["measured"] = comparison_json(simulation.figures, simulation.measured);
  json["timeline"] = timeline_json(run.timeline);
  return json;
}

}  // namespace dculab::cli

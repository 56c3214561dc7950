#include "study/evaluate/simulation.hpp"

#include <algorithm>
#include <thread>

#include "sim/serving/step_sample.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/evaluate/serving_figures.hpp"
#include "study/scenario/asked_metrics.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/server.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] Simulation simulate_point(const SimulatedPoint& asked, const SimulateOptions& options) {
  const config::Scenario& scenario = asked.point->scenario;
  sim::SimulatedServer server = resolve_server(scenario, resolve_machine(scenario, asked.machine));
  refuse_unstated_costs(scenario, server.machine);
  if (options.meter != nullptr) options.meter->prepare(scenario, server);
  sim::StepSample sample(sim::kSampledSteps);
  const auto on_step = [&](const ServedStep& step, int engine) {
    sample.add(step);
    if (options.on_step) options.on_step(step, engine);
  };
  Simulation done;
  done.machine = asked.machine;
  done.choices = asked.point->choices;
  done.slo = scenario.slo;
  const RequestWorkload workload = resolve_requests(scenario, server.model);
  done.run = sim::simulate(server, workload, scenario.slo, {.on_finished = options.on_finished, .on_step = on_step});
  done.steps = sim::thinned(sample.batches(), sim::kPricedSteps);
  done.trust = sim::step_confidence(server, sample.batches());
  done.figures = run_figures(server, done.run);
  if (server.few_heads) done.figures[kFewHeadsRequests] = static_cast<double>(done.run.head_sets.requests.back());
  if (options.meter != nullptr) options.meter->measure(scenario, server, workload, done);
  done.server = std::move(server);
  return done;
}

}  // namespace

sim::Prices step_prices(const std::vector<const Simulation*>& simulations) {
  return [simulations](const sim::Machine& machine) {
    std::vector<Seconds> times;
    for (const Simulation* simulation : simulations) {
      sim::SimulatedServer server = simulation->server;
      server.machine = machine;
      const std::vector<Seconds> of_one = sim::phase_times(server, simulation->steps);
      times.insert(times.end(), of_one.begin(), of_one.end());
    }
    return times;
  };
}

std::vector<Simulation> simulate_points(const std::vector<SimulatedPoint>& points, const SimulateOptions& options) {
  std::vector<Simulation> all(points.size());
  const bool alone = options.meter != nullptr || options.on_step || options.on_finished;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&](std::uint64_t index) {
      all[index] = simulate_point(points[index], options);
      return std::string();
    };
  };
  sim::work_in_order({0, points.size()},
                     alone                 ? 1
                     : options.threads > 0 ? options.threads
                                           : cores,
                     make_worker, [&](std::uint64_t index, const std::string&) {
                       if (options.progress)
                         options.progress(points[index].machine,
                                          static_cast<double>(index + 1) / static_cast<double>(points.size()));
                     });
  return all;
}

std::string label(const Simulation& simulation) {
  std::string text = simulation.machines();
  for (const auto& [key, value] : simulation.choices) text += ", " + axis_title(key) + " " + value;
  return text;
}

}  // namespace dculab::study

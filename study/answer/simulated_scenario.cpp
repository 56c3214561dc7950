#include "study/answer/simulated_scenario.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "study/decide/simulated_choices.hpp"
#include "study/evaluate/serving_intervals.hpp"
#include "study/scenario/format_warnings.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/server.hpp"
#include "study/scenario/stacks.hpp"
#include "study/scenario/taken_blocks.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] bool sweeps(const config::Scenario& scenario, std::string_view key) {
  return std::ranges::find(scenario.sweep, key, &config::SweepAxis::key) != scenario.sweep.end();
}

// The points of each machine of the scenario. Their block sizes are those that its stack takes.
[[nodiscard]] std::vector<MachineSweep> sweeps_of(const config::Scenario& scenario) {
  std::vector<MachineSweep> found;
  for (const std::string& listed : scenario.machines) {
    if (sweeps(scenario, "machine")) {
      found.push_back({listed, config::sweep_points(scenario), {}});
      continue;
    }
    TakenPoints taken = taken_points(scenario, resolve_machine(scenario, listed));
    found.push_back({listed, std::move(taken.points), std::move(taken.left_out)});
  }
  return found;
}

[[nodiscard]] std::vector<SimulatedPoint> asked_of(const SimulationQuestion& question) {
  const bool of_points = sweeps(question.scenario, "machine");
  std::vector<SimulatedPoint> asked;
  for (const MachineSweep& sweep : question.sweeps)
    for (const config::SweepPoint& point : sweep.points)
      asked.push_back({&point, of_points ? point.scenario.machines.front() : sweep.machine});
  return asked;
}

// The best point and, of each machine, which block sizes cannot be told apart; with the model's own KV heads where
// those are swept, which no objective can choose. `asked`: what `all` was simulated for, one each.
[[nodiscard]] SweepChoice choose_point(const std::vector<SimulatedPoint>& asked, const std::vector<Simulation>& all,
                                       const config::Scenario& scenario, int threads) {
  const config::Objective& objective = scenario.objective;
  SweepChoice choice{.best = study::best(all, objective), .block_sizes = {}};
  if (!choice.best) return choice;
  choice.sweeps_heads = sweeps(scenario, "model.num_key_value_heads");
  const int own = choice.sweeps_heads ? resolve_model(scenario).heads().num_key_value_heads : 0;
  const auto has_own = [own](const Simulation& each) { return each.server.model.heads().num_key_value_heads == own; };
  const bool keeps_own = std::ranges::any_of(all, has_own);
  std::set<std::string> machines;
  for (const Simulation& each : all) {
    if (!machines.insert(each.machine).second) continue;
    const auto found = study::best(all, objective, [&](const Simulation& other) {
      return other.machine == each.machine && (!keeps_own || has_own(other));
    });
    if (!found) continue;
    if (auto blocks = block_size_verdict(asked, all, *found, objective, threads))
      choice.block_sizes.push_back(
          {each.machine, all[*found].server.model.heads().num_key_value_heads, *std::move(blocks)});
  }
  return choice;
}

// What the sweep changes of the machine itself.
[[nodiscard]] std::vector<config::Override> machine_choices(const Simulation& simulation) {
  std::vector<config::Override> changed;
  for (const config::Override& choice : simulation.choices)
    if (choice.first.starts_with("machine.")) changed.push_back(choice);
  return changed;
}

// Of each machine, as its first simulation has it: the steps of all that have it so.
[[nodiscard]] std::vector<SimulationSensitivities> simulation_sensitivities(const std::vector<Simulation>& all) {
  constexpr std::size_t kMost = 16;  // simulations of a machine
  std::vector<SimulationSensitivities> found;
  std::set<std::string> names;
  for (std::size_t index = 0; index < all.size(); ++index) {
    const Simulation& first = all[index];
    if (!names.insert(first.server.machine.name).second) continue;
    std::vector<const Simulation*> of_machine;
    for (const Simulation& each : all)
      if (each.machine == first.machine && of_machine.size() < kMost && machine_choices(each) == machine_choices(first))
        of_machine.push_back(&each);
    found.push_back({index, sim::input_sensitivities(first.server.machine, step_prices(of_machine))});
  }
  return found;
}

// Those that are asked about, each once.
[[nodiscard]] std::vector<sim::Machine> machines_of(const config::Scenario& scenario,
                                                    const std::vector<SimulatedPoint>& asked) {
  std::vector<sim::Machine> machines;
  std::set<std::string> names;
  for (const SimulatedPoint& each : asked)
    if (names.insert(each.machine).second) machines.push_back(resolve_machine(scenario, each.machine));
  return machines;
}

}  // namespace

std::size_t SimulationQuestion::num_points() const {
  std::size_t count = 0;
  for (const MachineSweep& sweep : sweeps) count += sweep.points.size();
  return count;
}

SimulationQuestion simulation_question(config::Scenario scenario) {
  SimulationQuestion question{.scenario = std::move(scenario), .kernels = {}, .notes = {}, .sweeps = {}};
  question.kernels = whose_kernels(question.scenario);
  question.notes = model_notes(question.scenario);
  question.sweeps = sweeps_of(question.scenario);
  return question;
}

SimulationAnswer answer_simulation(const SimulationQuestion& question, const SimulateOptions& options,
                                   SimulatedIntervals intervals) {
  const config::Scenario& scenario = question.scenario;
  const std::vector<SimulatedPoint> asked = asked_of(question);
  SimulationAnswer answer{.simulations = simulate_points(asked, options), .refused = {}};
  std::vector<Simulation>& all = answer.simulations;
  for (const Simulation& simulation : all) {
    std::ranges::move(refused_kv(simulation.server), std::back_inserter(answer.refused));
    std::ranges::move(format_warnings(simulation.server.machine, simulation.server.options),
                      std::back_inserter(answer.refused));
  }
  if (!scenario.pareto.empty()) answer.front = pareto_front(all, scenario.pareto, scenario.objective);
  if (scenario.objective.metric != config::Objective{}.metric)
    answer.choice = choose_point(asked, all, scenario, options.threads);
  if (asked.size() == 1 && intervals == SimulatedIntervals::of_single_point)
    add_intervals(*asked.front().point, options.threads, all.front());
  answer.input_sensitivities = simulation_sensitivities(all);
  answer.machines = machines_of(scenario, asked);
  return answer;
}

void add_measured_steps(const std::vector<Simulation>& simulations, Trace& trace) {
  for (const Simulation& simulation : simulations) {
    trace.header = simulation.trace.header;
    for (TraceStep step : simulation.trace.steps) {
      step.id = label(simulation) + ", " + step.id;
      trace.steps.push_back(std::move(step));
    }
  }
}

}  // namespace dculab::study

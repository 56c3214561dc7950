#include "present/study/simulated_scenario.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/unit_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/simulation_conclusion.hpp"
#include "present/values/draft_report.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] Table bound_table(const sim::ServingRun& run) {
  Table table;
  table.title = "What the time is spent on";
  table.columns = {"bound", "time", "share of steps"};
  for (const auto& [bound, time] : run.time_by_bound)
    table.rows.push_back({bound, config::short_text(time), percent(time / run.busy)});
  return table;
}

[[nodiscard]] Table replica_table(const sim::ServingRun& run) {
  Table table;
  table.title = "Replicas";
  table.columns = {"replica", "requests", "steps", "busy", "preemptions"};
  int number = 0;
  for (const sim::ReplicaRun& replica : run.replicas) {
    const double busy = replica.busy / run.metrics.duration();
    std::string title = std::to_string(++number);
    if (replica.role != ReplicaRole::both) title += " " + std::string(name(replica.role));
    table.rows.push_back({title, std::to_string(replica.requests), std::to_string(replica.num_steps), percent(busy),
                          std::to_string(replica.num_preemptions)});
  }
  table.notes = {"Busy: of the time from the first arrival to the last token, a replica's devices on average."};
  return table;
}

[[nodiscard]] std::string queue_text(const ServingMetrics& metrics) {
  const auto rate = [&metrics](Seconds time) {
    return number(static_cast<double>(metrics.requests()) / time.value()) + " requests/s";
  };
  return rate(metrics.arrival_span()) + " arrive and " + rate(metrics.duration()) +
         " are served: the queue grows, and so do the waits; `dculab recommend --devices N` says how many devices "
         "serve "
         "them";
}

void add_details(const study::Simulation& simulation, Report& report) {
  const sim::ServingRun& run = simulation.run;
  report.heading.push_back(study::label(simulation) + ":");
  for (const std::string& line : throughput_lines(run.metrics, simulation.slo)) report.heading.push_back(line);
  if (run.metrics.queue_grew()) add_warnings(report, {queue_text(run.metrics)});
  report.heading.push_back(cost_text(simulation));
  if (run.one_in > 1)
    report.heading.push_back("of every " + std::to_string(run.one_in) +
                             " groups of devices that share experts one is simulated, with one in " +
                             std::to_string(run.one_in) + " requests; steps and blocks are of those");
  report.heading.push_back(std::to_string(run.num_steps) + " steps, " + preemption_text(run) +
                           ", KV blocks used at most: " + std::to_string(run.timeline.most_used_blocks()) + " of " +
                           std::to_string(run.num_blocks));
  if (simulation.server.few_heads) report.heading.push_back(head_set_line(head_sets_of(simulation)));
  if (run.drafts.num_drafts > 0) report.heading.push_back("drafts: " + draft_summary(present::drafts_of(run)));
  if (!simulation.measured.empty()) report.tables.push_back(comparison_table(simulation.figures, simulation.measured));
  report.tables.push_back(latency_table(run.metrics));
  if (!simulation.intervals.empty()) report.tables.push_back(interval_table(simulation));
  if (run.replicas.size() > 1) report.tables.push_back(replica_table(run));
  report.tables.push_back(bound_table(run));
  report.tables.push_back(timeline_table(run.timeline, run.num_blocks, run.num_engines));
}

// Of each machine the least sure simulation's.
void add_trust(const std::vector<study::Simulation>& all, Report& report) {
  std::map<std::string, sim::StepConfidence> of_machine;
  for (const study::Simulation& each : all) {
    const auto [known, is_new] = of_machine.try_emplace(each.server.machine.name, each.trust);
    if (each.trust.high > known->second.high) known->second = each.trust;
  }
  for (const auto& [machine, trust] : of_machine)
    report.tables.back().notes.push_back(machine + ": steps take " + trust_text(trust) +
                                         "; one point alone shows what that does to its figures.");
}

void add_sweep(const std::string& question, const std::vector<study::Simulation>& all, Report& report) {
  report.tables.push_back(sweep_table(all));
  report.tables.back().title = question;
  add_trust(all, report);
  for (const study::Simulation& simulation : all)
    if (!simulation.measured.empty()) {
      report.tables.push_back(comparison_table(simulation.figures, simulation.measured));
      report.tables.back().title = study::label(simulation);
    }
}

}  // namespace

SimulationReport::SimulationReport() : report_(report_of("dculab/simulate/1", ReportedSimulations{})) {}

// The best point and, of each machine, which block sizes cannot be told apart.
void SimulationReport::add_choice(const study::SweepChoice& choice, const std::vector<study::Simulation>& all,
                                  const config::Objective& objective) {
  const std::string goal = (objective.goal == config::Goal::maximize ? "largest " : "smallest ") + objective.metric;
  report_.heading.push_back(choice.best ? goal + ": " + study::label(all[*choice.best])
                                        : "no point of the sweep meets objective.subject_to");
  if (!choice.best) return;
  if (!told_.best) told_.best.emplace();
  told_.best->push_back(told_.simulations.size() + *choice.best);
  for (const study::ServedBlockSizes& each : choice.block_sizes) {
    if (!told_.block_sizes) told_.block_sizes.emplace();
    told_.block_sizes->push_back(tell_block_sizes(each.machine, each.kv_heads, each.blocks, report_.heading));
  }
  if (choice.sweeps_heads)
    report_.heading.push_back("→ no number of KV heads is recommended, because accuracy was not weighed");
}

// The points that no other beats in all of scenario.pareto.
void SimulationReport::add_front(const std::vector<std::size_t>& indices, const std::vector<study::Simulation>& all,
                                 const config::Scenario& scenario) {
  const std::vector<config::Aim>& aims = scenario.pareto;
  std::string reported;
  for (const config::Aim& aim : aims)
    reported += (reported.empty() ? "" : ", ") + std::string(aim.goal == config::Goal::minimize ? "small " : "large ") +
                aim.metric;
  const bool limited = !scenario.objective.subject_to.empty();
  report_.heading.push_back((limited ? "of what meets objective.subject_to none is better in " : "none is better in ") +
                            reported + " than:");
  if (!told_.pareto) told_.pareto.emplace();
  std::vector<std::size_t>& front = told_.pareto->emplace_back();
  for (const std::size_t index : indices) {
    std::string line = "  " + study::label(all[index]);
    for (const config::Aim& aim : aims)
      line += ", " + aim.metric + " " + figure_cell(aim.metric, all[index].figures.at(aim.metric));
    report_.heading.push_back(line);
    front.push_back(told_.simulations.size() + index);
  }
}

// Beside those of the scenarios before.
void SimulationReport::add_input_sensitivities(const study::SimulationAnswer& answer) {
  if (!told_.machine_facts) told_.machine_facts.emplace();
  if (!told_.input_sensitivity) told_.input_sensitivity.emplace();
  for (const study::SimulationSensitivities& each : answer.input_sensitivities) {
    const sim::Machine& machine = answer.simulations[each.simulation].server.machine;
    set_of_machine(*told_.machine_facts, machine.name, machine_facts(machine));
    const std::vector<ReportedInputSensitivity> found =
        note_input_sensitivities(machine, each.input_sensitivities, report_.tables.back(), Priced::served_steps);
    auto known = std::ranges::find(*told_.input_sensitivity, machine.name, [](const auto& of) { return of.first; });
    if (known == told_.input_sensitivity->end())
      known = told_.input_sensitivity->emplace(known, machine.name, std::vector<ReportedInputSensitivity>{});
    for (const ReportedInputSensitivity& sensitivity : found)
      if (std::ranges::find(known->second, sensitivity.key, &ReportedInputSensitivity::key) == known->second.end())
        known->second.push_back(sensitivity);
  }
}

void SimulationReport::add(const study::SimulationQuestion& question, const study::SimulationAnswer& answer) {
  const config::Scenario& scenario = question.scenario;
  const std::vector<study::Simulation>& all = answer.simulations;
  report_.heading.push_back(scenario.question);
  if (!told_.subjects) told_.subjects.emplace();
  told_.subjects->emplace_back(subject_of(scenario));
  for (const std::string& line : question.kernels) report_.heading.push_back(line);
  add_warnings(report_, question.notes);
  for (const study::MachineSweep& sweep : question.sweeps)
    if (!sweep.left_out.empty()) report_.heading.push_back(left_out_text(sweep.machine, sweep.left_out));
  add_warnings(report_, answer.refused);
  if (answer.front) add_front(*answer.front, all, scenario);
  if (answer.choice) add_choice(*answer.choice, all, scenario.objective);
  if (all.size() == 1)
    add_details(all.front(), report_);
  else
    add_sweep(scenario.question, all, report_);
  add_input_sensitivities(answer);
  for (const sim::Machine& machine : answer.machines)
    set_of_machine(*told_.machine_facts, machine.name, machine_facts(machine, scenario.sweep));
  for (const study::Simulation& simulation : all) told_.simulations.push_back(simulation);
  for (std::string& sentence : conclusion_of(scenario, answer)) told_.conclusion.push_back(std::move(sentence));
}

Report SimulationReport::take() {
  set_answer(told_, report_);
  return std::move(report_);
}

}  // namespace dculab::present

// `dculab simulate`: a scenario's requests served under a virtual clock, by the engine's own scheduler.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "cli/serving/sweep_answer.hpp"
#include "config/chrome_trace.hpp"
#include "config/trace_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "files/output.hpp"
#include "present/engine/draft_report.hpp"
#include "present/study/comparison_table.hpp"
#include "present/study/serving_report.hpp"
#include "present/study/simulation_report.hpp"
#include "present/values/leaning_report.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/verdict_text.hpp"
#include "study/evaluate/serving_intervals.hpp"
#include "study/measure/measured_simulation.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/server.hpp"
#include "study/scenario/serving_scenario.hpp"
#include "study/scenario/stacks.hpp"
#include "study/scenario/taken_blocks.hpp"

namespace dculab::cli {
namespace {

struct SimulateChoices {
  std::vector<std::string> scenarios;
  std::vector<std::string> set;
  std::string stack;
  std::string chrome_trace_file;
  std::string trace_file;
  bool measure = false;
  bool no_intervals = false;
  int threads = 0;  // 0: all cores
  present::OutputOptions output;
};

[[nodiscard]] present::Table bound_table(const sim::ServingRun& run) {
  present::Table table;
  table.title = "What the time is spent on";
  table.columns = {"bound", "time", "share of steps"};
  for (const auto& [bound, time] : run.time_by_bound)
    table.rows.push_back({bound, present::Cell(config::short_text(time), time.value()),
                          present::Cell(present::percent(time / run.busy), time / run.busy)});
  return table;
}

[[nodiscard]] present::Table replica_table(const sim::ServingRun& run) {
  present::Table table;
  table.title = "Replicas";
  table.columns = {"replica", "requests", "steps", "busy", "preemptions"};
  int number = 0;
  for (const sim::ReplicaRun& replica : run.replicas) {
    const double busy = replica.busy / run.metrics.duration();
    std::string title = std::to_string(++number);
    if (replica.role != ReplicaRole::both) title += " " + std::string(name(replica.role));
    table.rows.push_back({title, std::to_string(replica.requests), std::to_string(replica.num_steps),
                          present::Cell(present::percent(busy), busy), std::to_string(replica.num_preemptions)});
  }
  table.notes = {"Busy: of the time from the first arrival to the last token, a replica's devices on average."};
  return table;
}

void add_details(const study::Simulation& simulation, present::Report& report) {
  const sim::ServingRun& run = simulation.run;
  report.heading.push_back(study::label(simulation) + ":");
  for (const std::string& line : present::throughput_lines(run.metrics, simulation.slo)) report.heading.push_back(line);
  if (run.one_in > 1)
    report.heading.push_back("of every " + std::to_string(run.one_in) +
                             " groups of devices that share experts one is simulated, with one in " +
                             std::to_string(run.one_in) + " requests; steps and blocks are of those");
  report.heading.push_back(std::to_string(run.num_steps) + " steps, " + present::preemption_text(run) +
                           ", KV blocks used at most: " + std::to_string(run.timeline.most_used_blocks()) + " of " +
                           std::to_string(run.num_blocks));
  if (simulation.server.few_heads) report.heading.push_back(present::head_set_line(present::head_sets_of(simulation)));
  if (run.drafts.num_drafts > 0) report.heading.push_back("drafts: " + present::draft_summary(present::drafts_of(run)));
  if (!simulation.measured.empty())
    report.tables.push_back(present::comparison_table(simulation.figures, simulation.measured));
  report.tables.push_back(present::latency_table(run.metrics));
  if (!simulation.intervals.empty()) report.tables.push_back(present::interval_table(simulation));
  if (run.replicas.size() > 1) report.tables.push_back(replica_table(run));
  report.tables.push_back(bound_table(run));
  report.tables.push_back(present::timeline_table(run.timeline, run.num_blocks, run.num_engines));
}

// What the sweep changes of the machine itself.
[[nodiscard]] std::vector<config::Override> machine_choices(const study::Simulation& simulation) {
  std::vector<config::Override> changed;
  for (const config::Override& choice : simulation.choices)
    if (choice.first.starts_with("machine.")) changed.push_back(choice);
  return changed;
}

// Of each machine the least sure simulation's.
void add_trust(const std::vector<study::Simulation>& all, present::Report& report) {
  std::map<std::string, sim::StepConfidence> of_machine;
  for (const study::Simulation& each : all) {
    const auto [known, is_new] = of_machine.try_emplace(each.server.machine.name, each.trust);
    if (each.trust.high > known->second.high) known->second = each.trust;
  }
  for (const auto& [machine, trust] : of_machine)
    report.tables.back().notes.push_back(machine + ": steps take " + present::trust_text(trust) +
                                         "; one point alone shows what that does to its figures.");
}

// Of each machine, as its first simulation has it: the steps of all that have it so.
void add_leanings_of(const std::vector<study::Simulation>& all, present::Report& report) {
  constexpr std::size_t kMost = 16;  // simulations of a machine
  present::Json leans_on = present::Json::object();
  for (const study::Simulation& first : all) {
    const std::string& name = first.server.machine.name;
    if (leans_on.contains(name)) continue;
    std::vector<const study::Simulation*> of_machine;
    for (const study::Simulation& each : all)
      if (each.machine == first.machine && of_machine.size() < kMost && machine_choices(each) == machine_choices(first))
        of_machine.push_back(&each);
    leans_on[name] = present::add_leanings(first.server.machine, study::step_prices(of_machine), report,
                                           present::Priced::served_steps);
  }
  for (const auto& [machine, keys] : leans_on.items()) {
    present::Json& known = report.json["leans_on"][machine];  // of the scenarios before
    for (const present::Json& key : keys)
      if (const auto same = [&key](const present::Json& each) { return each["key"] == key["key"]; };
          known.is_null() || std::none_of(known.begin(), known.end(), same))
        known.push_back(key);
    if (known.is_null()) known = present::Json::array();
  }
}

[[nodiscard]] bool sweeps_machine(const config::Scenario& scenario) {
  return std::ranges::any_of(scenario.sweep, [](const config::SweepAxis& axis) { return axis.key == "machine"; });
}

// `chrome_trace`: takes the steps; null where none is asked for.
[[nodiscard]] std::vector<study::Simulation> simulate_all(const std::vector<study::SimulatedPoint>& asked,
                                                          const SimulateChoices& choices,
                                                          config::ChromeTrace* chrome_trace) {
  ProgressBar bar;
  const auto progress = [&bar](const std::string& label, double share) { bar.update(label, share); };
  const study::EngineMeter meter(choices.trace_file.empty() ? engine::OpTiming::off : engine::OpTiming::on, progress);
  study::SimulateOptions options{
      .threads = choices.threads, .meter = choices.measure ? &meter : nullptr, .progress = progress};
  if (chrome_trace != nullptr)
    options.on_step = [chrome_trace](const ServedStep& step, int engine) { chrome_trace->add(step, engine); };
  return study::simulate_points(asked, options);
}

void add_steps(const study::Simulation& simulation, Trace& trace) {
  trace.header = simulation.trace.header;
  for (TraceStep step : simulation.trace.steps) {
    step.id = study::label(simulation) + ", " + step.id;
    trace.steps.push_back(std::move(step));
  }
}

// The points of each machine of the scenario. Their block sizes are those that its stack takes.
[[nodiscard]] std::vector<std::vector<config::SweepPoint>> points_of(const config::Scenario& scenario,
                                                                     present::Report& report) {
  std::vector<std::vector<config::SweepPoint>> points;
  for (const std::string& listed : scenario.machines) {
    if (sweeps_machine(scenario)) {
      points.push_back(config::sweep_points(scenario));
      continue;
    }
    study::TakenPoints taken = study::taken_points(scenario, study::resolve_machine(scenario, listed));
    if (!taken.left_out.empty()) report.heading.push_back(present::left_out_text(listed, taken.left_out));
    points.push_back(std::move(taken.points));
  }
  return points;
}

[[nodiscard]] std::vector<study::SimulatedPoint> asked_of(const config::Scenario& scenario,
                                                          const std::vector<std::vector<config::SweepPoint>>& sweeps) {
  std::vector<study::SimulatedPoint> asked;
  for (std::size_t index = 0; index < sweeps.size(); ++index)
    for (const config::SweepPoint& point : sweeps[index])
      asked.push_back({&point, sweeps_machine(scenario) ? point.scenario.machines.front() : scenario.machines[index]});
  return asked;
}

void add_sweep(const std::string& question, const std::vector<study::Simulation>& all, present::Report& report) {
  report.tables.push_back(present::sweep_table(all));
  report.tables.back().title = question;
  add_trust(all, report);
  for (const study::Simulation& simulation : all)
    if (!simulation.measured.empty()) {
      report.tables.push_back(present::comparison_table(simulation.figures, simulation.measured));
      report.tables.back().title = study::label(simulation);
    }
}

void add_machine_facts(const config::Scenario& scenario, const std::vector<study::SimulatedPoint>& asked,
                       present::Report& report) {
  for (const study::SimulatedPoint& each : asked) {
    const sim::Machine machine = study::resolve_machine(scenario, each.machine);
    report.json["machine_facts"][machine.name] = present::machine_facts(machine, scenario.sweep);
  }
}

[[nodiscard]] present::Report simulate(const SimulateChoices& choices) {
  present::Report report{"dculab/simulate/1", {}, {}, present::Json{{"simulations", present::Json::array()}}};
  if (!choices.trace_file.empty() && !choices.measure)
    throw InputError("--trace", "holds measured steps; give --measure too");
  config::ChromeTrace chrome_trace;
  Trace trace;
  std::vector<config::Scenario> scenarios;  // all of them before the work
  for (const std::string& name : choices.scenarios)
    scenarios.push_back(study::read_serving_scenario(name, choices.set));
  for (const config::Scenario& scenario : scenarios) {
    report.heading.push_back(scenario.question);
    for (std::string& line : study::whose_kernels(scenario)) report.heading.push_back(std::move(line));
    present::add_warnings(report, study::model_notes(scenario));
    const std::vector<std::vector<config::SweepPoint>> points = points_of(scenario, report);
    const std::vector<study::SimulatedPoint> asked = asked_of(scenario, points);
    const bool single = asked.size() == 1;
    if (!choices.chrome_trace_file.empty() && !(single && choices.scenarios.size() == 1))
      throw InputError("--chrome-trace", "shows one simulation; give one scenario, one machine and no sweep");
    std::vector<study::Simulation> all =
        simulate_all(asked, choices, choices.chrome_trace_file.empty() ? nullptr : &chrome_trace);
    for (const study::Simulation& simulation : all) present::add_warnings(report, study::refused_kv(simulation.server));
    if (!scenario.pareto.empty()) add_front(all, scenario, report);
    if (scenario.objective.metric != config::Objective{}.metric)
      add_choice(asked, all, scenario, choices.threads, report);
    if (single) {
      if (!choices.no_intervals) study::add_intervals(*asked.front().point, choices.threads, all.front());
      add_details(all.front(), report);
    } else {
      add_sweep(scenario.question, all, report);
    }
    add_leanings_of(all, report);
    add_machine_facts(scenario, asked, report);
    for (const study::Simulation& simulation : all) {
      report.json["simulations"].push_back(present::to_json(simulation));
      add_steps(simulation, trace);
    }
  }
  if (!choices.chrome_trace_file.empty()) files::write_file_atomically(choices.chrome_trace_file, chrome_trace.json());
  if (!choices.trace_file.empty()) files::write_file_atomically(choices.trace_file, config::trace_json_lines(trace));
  return report;
}

}  // namespace

void add_simulate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("simulate", "Serve a scenario's requests under a virtual clock");
  auto choices = std::make_shared<SimulateChoices>();
  reads(command->add_option("scenario", choices->scenarios, "Scenario files, or names under scenarios"),
        study::try_find_scenario)
      ->required();
  add_stack_option(*command, choices->stack);
  command->add_option("--set", choices->set, "key=value: override any scenario key")->option_text("KEY=VALUE ...");
  command->add_option("--threads", choices->threads, "Simulations at a time, 0 = all cores")->check(thread_count());
  command->add_flag("--measure", choices->measure,
                    "Also serve them with this machine's engine; the scenario's machine is its calibrated file");
  command->add_flag("--no-intervals", choices->no_intervals,
                    "Do not serve a single simulation twice more for the intervals of its figures");
  add_output_file(*command, "--chrome-trace", choices->chrome_trace_file,
                  "Write the steps for chrome://tracing or ui.perfetto.dev");
  add_output_file(*command, "--trace", choices->trace_file,
                  "With --measure: write steps of the engine, for `dculab calibrate`");
  add_report_options(*command, choices->output);
  command->callback([choices] {
    set_stack(choices->stack, choices->set);
    present::show(simulate(*choices), choices->output);
  });
}

}  // namespace dculab::cli

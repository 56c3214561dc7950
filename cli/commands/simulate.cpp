// `dculab simulate`: a scenario's requests served under a virtual clock, by the engine's own scheduler.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/chrome_trace.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "files/output.hpp"
#include "present/study/simulated_scenario.hpp"
#include "study/measure/measured_simulation.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/serving_scenario.hpp"

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

// `chrome_trace`: takes the steps; null where none is asked for.
[[nodiscard]] study::SimulationAnswer answer(const study::SimulationQuestion& question, const SimulateChoices& choices,
                                             config::ChromeTrace* chrome_trace) {
  ProgressBar bar;
  const auto progress = [&bar](const std::string& label, double share) { bar.update(label, share); };
  const study::EngineMeter meter(choices.trace_file.empty() ? engine::OpTiming::off : engine::OpTiming::on, progress);
  study::SimulateOptions options{
      .threads = choices.threads, .meter = choices.measure ? &meter : nullptr, .progress = progress};
  if (chrome_trace != nullptr)
    options.on_step = [chrome_trace](const ServedStep& step, int engine) { chrome_trace->add(step, engine); };
  return study::answer_simulation(
      question, options,
      choices.no_intervals ? study::SimulatedIntervals::none : study::SimulatedIntervals::of_single_point);
}

[[nodiscard]] present::Report simulate(const SimulateChoices& choices) {
  present::SimulationReport report;
  if (!choices.trace_file.empty() && !choices.measure)
    throw InputError("--trace", "holds measured steps; give --measure too");
  config::ChromeTrace chrome_trace;
  const bool draws_chrome_trace = !choices.chrome_trace_file.empty();
  Trace trace;
  std::vector<config::Scenario> scenarios;  // all of them before the work
  for (const std::string& name : choices.scenarios)
    scenarios.push_back(study::read_serving_scenario(name, choices.set));
  for (config::Scenario& scenario : scenarios) {
    const study::SimulationQuestion question = study::simulation_question(std::move(scenario));
    if (draws_chrome_trace && (question.num_points() > 1 || scenarios.size() > 1))
      throw InputError("--chrome-trace", "shows one simulation; give one scenario, one machine and no sweep");
    const study::SimulationAnswer found = answer(question, choices, draws_chrome_trace ? &chrome_trace : nullptr);
    report.add(question, found);
    study::add_measured_steps(found.simulations, trace);
  }
  if (draws_chrome_trace) files::write_file_atomically(choices.chrome_trace_file, chrome_trace.json());
  if (!choices.trace_file.empty()) files::write_file_atomically(choices.trace_file, config::trace_json_lines(trace));
  return report.take();
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
                    "Skip the two extra runs that give a single simulation its intervals");
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

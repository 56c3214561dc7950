// `dculab simulate`: a scenario's requests served under a virtual clock, by the engine's own scheduler.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/load_choices.hpp"
#include "config/benchmarks/vllm_writer.hpp"
#include "config/chrome_trace.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "files/output.hpp"
#include "present/study/simulated_scenario.hpp"
#include "study/benchmarks/benchmark_cases.hpp"
#include "study/measure/measured_simulation.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/serving_scenario.hpp"

namespace dculab::cli {
namespace {

struct SimulateChoices {
  std::vector<std::string> scenarios;
  study::LoadQuestion load;
  std::string chrome_trace_file;
  std::string result_file;  // --save-result
  std::string trace_file;
  bool measure = false;
  bool no_intervals = false;
  int threads = 0;  // 0: all cores
  present::OutputOptions output;
};

// What takes the steps and the requests of a single simulation; null where none is asked for.
struct Records {
  config::ChromeTrace* chrome_trace = nullptr;
  config::VllmRun* result = nullptr;
};

[[nodiscard]] study::SimulationAnswer answer(const study::SimulationQuestion& question, const SimulateChoices& choices,
                                             const Records& records) {
  ProgressBar bar;
  const auto progress = [&bar](const std::string& label, double share) { bar.update(label, share); };
  const study::EngineMeter meter(choices.trace_file.empty() ? engine::OpTiming::off : engine::OpTiming::on, progress);
  study::SimulateOptions options{
      .threads = choices.threads, .meter = choices.measure ? &meter : nullptr, .progress = progress};
  if (config::ChromeTrace* chrome_trace = records.chrome_trace)
    options.on_step = [chrome_trace](const ServedStep& step, int engine) { chrome_trace->add(step, engine); };
  if (config::VllmRun* result = records.result)
    options.on_finished = [result](const Sequence& sequence) { result->add(sequence); };
  return study::answer_simulation(
      question, options,
      choices.no_intervals ? study::SimulatedIntervals::none : study::SimulatedIntervals::of_single_point);
}

void refuse_records(const Records& records) {
  if (records.chrome_trace == nullptr && records.result == nullptr) return;
  throw InputError(records.chrome_trace != nullptr ? "--chrome-trace" : "--save-result",
                   "holds one simulation; give one scenario, one machine and no sweep");
}

[[nodiscard]] present::Report simulate(const SimulateChoices& choices) {
  present::SimulationReport report;
  if (!choices.trace_file.empty() && !choices.measure)
    throw InputError("--trace", "holds measured steps; give --measure too");
  config::ChromeTrace chrome_trace;
  config::VllmRun result;
  Records records;
  if (!choices.chrome_trace_file.empty()) records.chrome_trace = &chrome_trace;
  if (!choices.result_file.empty()) records.result = &result;
  Trace trace;
  std::vector<config::Scenario> scenarios;  // all of them before the work
  for (const std::string& name : choices.scenarios)
    scenarios.push_back(study::read_serving_scenario(name, choices.load));
  for (config::Scenario& scenario : scenarios) {
    const study::SimulationQuestion question = study::simulation_question(std::move(scenario));
    if (question.num_points() > 1 || scenarios.size() > 1) refuse_records(records);
    result = study::vllm_run_of(question.scenario);
    const study::SimulationAnswer found = answer(question, choices, records);
    if (records.result != nullptr && found.simulations.front().run.one_in > 1)
      throw InputError("--save-result", "holds all requests; of " +
                                            std::to_string(found.simulations.front().run.one_in) +
                                            " here one is simulated, since groups of devices share the experts");
    report.add(question, found);
    study::add_measured_steps(found.simulations, trace);
  }
  if (records.chrome_trace != nullptr) files::write_file_atomically(choices.chrome_trace_file, chrome_trace.json());
  if (records.result != nullptr) files::write_file_atomically(choices.result_file, config::vllm_serve_json(result));
  if (!choices.trace_file.empty()) files::write_file_atomically(choices.trace_file, config::trace_json_lines(trace));
  return report.take();
}

}  // namespace

void add_simulate(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("simulate", "Serve requests, of a scenario or of options, under a virtual clock");
  auto choices = std::make_shared<SimulateChoices>();
  reads(command->add_option("scenario", choices->scenarios, "Scenario files, or names under scenarios"),
        study::try_find_scenario);
  add_load_choices(*command, choices->load);
  command->add_option("--threads", choices->threads, "Simulations at a time, 0 = all cores")->check(thread_count());
  command->add_flag("--measure", choices->measure,
                    "Also serve them with this machine's engine; the scenario's machine is its calibrated file");
  command->add_flag("--no-intervals", choices->no_intervals,
                    "Skip the two extra runs that give a single simulation its intervals");
  add_output_file(*command, "--chrome-trace", choices->chrome_trace_file,
                  "Write the steps for chrome://tracing or ui.perfetto.dev");
  add_output_file(*command, "--save-result", choices->result_file,
                  "Write the requests as `vllm bench serve --save-result --save-detailed` does");
  add_output_file(*command, "--trace", choices->trace_file,
                  "With --measure: write steps of the engine, for `dculab calibrate`");
  add_report_options(*command, choices->output);
  add_examples(*command, {"dculab simulate --model llama-3-8b --machine k100-ai --stack vllm --requests-per-second 1",
                          "dculab simulate serving/llama3_on_z100 --set workload.requests=100"});
  command->callback([choices] {
    if (choices->scenarios.empty())  // where there is none either, the options alone
      choices->scenarios.push_back(study::take_scenario(choices->load));
    present::show(simulate(*choices), choices->output);
  });
}

}  // namespace dculab::cli

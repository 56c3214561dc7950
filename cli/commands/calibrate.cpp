// `dculab calibrate`: fits a machine and its stack to results of benchmark tools, a machine to traces, or machines and
// stacks to published points, and writes them.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/benchmark_choices.hpp"
#include "cli/scenario/file_options.hpp"
#include "config/machine_file.hpp"
#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "files/output.hpp"
#include "present/answer/answered_calibration.hpp"
#include "study/benchmarks/benchmark_files.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct CalibrateChoices {
  present::TraceQuestion question;
  study::BenchmarkQuestion benchmark;
  std::vector<std::string> points;
  std::string machine_file;
  std::optional<int> seed;
  present::OutputOptions output;
};

void run_on_points(const CalibrateChoices& choices) {
  study::refuse_benchmark_options(choices.benchmark);
  present::show(present::calibrated_on_points(choices.points, choices.output.file),
                {.format = choices.output.format, .file = "", .report_file = ""});
}

void run_on_benchmarks(const CalibrateChoices& choices) {
  if (!choices.machine_file.empty())
    throw InputError("--machine-file", "is of traces; of benchmarks --output names a folder for machine and stack");
  if (choices.question.held_out.share > 0) throw InputError("--hold-out", "is of traces; leave it out");
  if (choices.seed) throw InputError("--seed", "is of traces; leave it out");
  study::BenchmarkQuestion question = choices.benchmark;
  question.files = choices.question.traces;
  question.machine = choices.question.machine;
  ProgressBar bar;
  const present::Report report = present::calibrated_on_benchmarks(question, choices.output.file, bar.updates());
  bar.clear();
  present::show(report, {.format = choices.output.format, .file = "", .report_file = ""});
}

void run_on_traces(CalibrateChoices& choices) {
  study::refuse_benchmark_options(choices.benchmark);
  choices.question.wants_machine = !choices.machine_file.empty();
  choices.question.held_out.seed = static_cast<std::uint64_t>(choices.seed.value_or(1));
  ProgressBar bar;
  present::CalibratedMachine calibrated = present::calibrated_on_traces(
      choices.question,
      {.progress = bar.updates(), .on_refused = [](const std::string& line) { std::cerr << printable(line) << '\n'; }});
  bar.clear();
  if (!choices.machine_file.empty()) {
    files::write_file_atomically(choices.machine_file, config::machine_yaml(calibrated.machine));
    calibrated.report.tables.back().notes.push_back(
        "wrote " + choices.machine_file + "; next: dculab predict --model MODEL --machine " + choices.machine_file);
  }
  present::show(calibrated.report, choices.output);
}

void run(CalibrateChoices& choices) {
  if (!choices.points.empty()) return run_on_points(choices);
  if (study::kind_of_files(choices.question.traces) == study::MeasuredFiles::benchmarks)
    return run_on_benchmarks(choices);
  run_on_traces(choices);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Fit a machine and a stack to benchmarks, a machine to traces, or many to points");
  auto choices = std::make_shared<CalibrateChoices>();
  CLI::Option* traces = reads(command->add_option("files", choices->question.traces, kMeasuredFilesHelp));
  CLI::Option* machine = reads(command->add_option("--machine", choices->question.machine,
                                                   "Machine to start from: a file, or a name under hwmodels"),
                               study::try_find_machine);
  add_benchmark_choices(*command, choices->benchmark);
  CLI::Option* points =
      reads(command->add_option("--points", choices->points, "CSVs of published points, to fit machines and stacks to"))
          ->option_text("FILE...")
          ->excludes(traces)
          ->excludes(machine);
  add_output_file(*command, "--machine-file", choices->machine_file, "Write the calibrated machine here");
  command->get_option("--machine-file")->excludes(points);
  command
      ->add_option("--hold-out", choices->question.held_out.share, "Share of the steps to score instead of fit, 0 to 1")
      ->check(CLI::Range(0.0, 0.9))
      ->excludes(points);
  command->add_option("--seed", choices->seed, "Seed of the steps that are held out")->excludes(points);
  add_format_option(*command, choices->output);
  writes(command->add_option(
             "--output", choices->output.file,
             "Of traces: write the report to this file; of benchmarks and --points: the calibrated machines and stacks "
             "to this folder"))
      ->option_text("FILE|FOLDER");
  add_examples(*command, {"dculab calibrate trace.jsonl --machine host.yaml --machine-file calibrated.yaml"});
  command->callback([choices] { run(*choices); });
}

}  // namespace dculab::cli

// `dculab calibrate`: fits a machine to traces, or machines and stacks to published points, and writes them.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/file_options.hpp"
#include "config/machine_file.hpp"
#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "files/output.hpp"
#include "present/study/calibration_report.hpp"
#include "present/study/validation_report.hpp"
#include "study/calibrate/catalog.hpp"
#include "study/calibrate/trace_calibration.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/validate/point_scores.hpp"
#include "study/validate/points_set.hpp"

namespace dculab::cli {
namespace {

struct CalibrateChoices {
  std::vector<std::string> traces;
  std::vector<std::string> points;
  std::string machine;
  std::string machine_file;
  double hold_out = 0;
  int seed = 1;
  present::OutputOptions output;
};

void run_on_points(const CalibrateChoices& choices) {
  if (choices.output.file.empty()) throw InputError("--output: name the folder for the machine and stack files");
  files::NewFolder folder(choices.output.file);
  study::PointSet set = study::read_point_set(choices.points);
  const study::Scores left_out = study::left_out_points(set);
  const auto learned = study::learn_from(set);
  study::Catalog catalog = study::learned_catalog(learned);
  study::Runs runs(learned);
  present::PointsCalibration told{
      .left_out = left_out,
      .learned = *learned,
      .errors = present::fitted_errors(study::summarize(study::score_points(set, set.runs, {}).rows),
                                       study::summarize(study::score_points(set, runs, {}).rows)),
      .intervals = {},
      .folder = choices.output.file,
      .files = {}};
  const std::vector<std::filesystem::path> files = catalog.write(folder.path());
  folder.keep();
  told.intervals = study::learned_intervals(catalog);
  for (const std::filesystem::path& file : files)
    told.files.push_back((std::filesystem::path(choices.output.file) / file).string());
  present::show(present::points_calibration_report(told),
                {.format = choices.output.format, .file = "", .report_file = ""});
}

void run_on_traces(const CalibrateChoices& choices) {
  if (choices.traces.empty())
    throw InputError("nothing to learn from; give trace files with --machine, or --points FILE...");
  if (choices.machine.empty()) throw InputError("--machine: the traces are of a machine; name it");
  const sim::Machine base = study::resolve_machine(choices.machine);
  const study::BelievedSteps believed = study::believed_steps(choices.traces, base);
  if (believed.steps.size() < sim::kFewestSteps)  // which is refused
    for (const std::string& line : believed.refused) std::cerr << printable(line) << '\n';
  ProgressBar bar;
  const std::string label = "fitting " + std::to_string(believed.steps.size()) + " steps";
  const study::TraceCalibration calibration =
      study::calibrate_on(believed.steps, base, {choices.hold_out, static_cast<std::uint64_t>(choices.seed)},
                          [&bar, &label](double share) { bar.update(label, share); });
  bar.clear();
  if (!choices.machine_file.empty())
    files::write_file_atomically(choices.machine_file, config::machine_yaml(calibration.fit.machine));
  present::show(present::trace_calibration_report(base.name, believed, calibration), choices.output);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("calibrate", "Fit a machine to traces, or machines and stacks to points");
  auto choices = std::make_shared<CalibrateChoices>();
  CLI::Option* traces =
      reads(command->add_option("traces", choices->traces, "Trace files, as `bench --trace` writes them"));
  CLI::Option* machine = reads(
      command->add_option("--machine", choices->machine, "Machine to start from: a file, or a name under hwmodels"),
      study::try_find_machine);
  CLI::Option* points =
      reads(command->add_option("--points", choices->points, "CSVs of published points, to fit machines and stacks to"))
          ->option_text("FILE...")
          ->excludes(traces)
          ->excludes(machine);
  add_output_file(*command, "--machine-file", choices->machine_file, "Write the calibrated machine here");
  command->get_option("--machine-file")->excludes(points);
  command->add_option("--hold-out", choices->hold_out, "Share of the steps to score instead of fit, 0 to 1")
      ->check(CLI::Range(0.0, 0.9))
      ->excludes(points);
  command->add_option("--seed", choices->seed, "Of the draw")->excludes(points);
  add_format_option(*command, choices->output);
  writes(command->add_option("--output", choices->output.file,
                             "Write the report of traces to this file, or what points teach to this folder"))
      ->option_text("FILE|FOLDER");
  command->callback([choices] { choices->points.empty() ? run_on_traces(*choices) : run_on_points(*choices); });
}

}  // namespace dculab::cli

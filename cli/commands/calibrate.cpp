// `dculab calibrate`: fits a machine to traces, or machines and stacks to published points, and writes them.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/file_options.hpp"
#include "config/machine_file.hpp"
#include "config/trace_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "files/output.hpp"
#include "present/study/held_out_report.hpp"
#include "present/study/validation_report.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/calibration/hold_out.hpp"
#include "study/calibrate/calibrated_machine.hpp"
#include "study/calibrate/catalog.hpp"
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

// All traces' steps, without those that cannot be true.
[[nodiscard]] std::vector<TraceStep> read_steps(const CalibrateChoices& choices, const sim::Machine& machine,
                                                present::Report& report) {
  std::vector<TraceStep> accepted;
  for (const std::string& file : choices.traces) {
    const Trace trace = config::read_trace_file(file);
    if (machine.kind == lower::DeviceKind::cpu && trace.header.threads != 0 &&
        trace.header.threads != machine.compute_units)
      throw InputError(file, "was taken with " + std::to_string(trace.header.threads) + " threads, but " +
                                 machine.name + " describes " + std::to_string(machine.compute_units) +
                                 "; probe with --threads " + std::to_string(trace.header.threads));
    const auto violations = sim::floor_violations(machine, trace.steps);
    present::add_refusals(violations, trace, report);
    std::set<std::size_t> refused;
    for (const sim::FloorViolation& violation : violations) refused.insert(violation.row);
    for (std::size_t row = 0; row < trace.steps.size(); ++row)
      if (!refused.contains(row)) accepted.push_back(trace.steps[row]);
  }
  if (accepted.size() < sim::kFewestSteps) {
    for (const std::string& line : report.heading) std::cerr << printable(line) << '\n';
    throw InputError("only " + std::to_string(accepted.size()) + " steps of these traces can be used, " +
                     std::to_string(sim::kFewestSteps) + " are needed; run a larger grid with `dculab bench --trace`");
  }
  return accepted;
}

[[nodiscard]] std::string value_text(const std::string& key, double value) {
  const bool is_time = key.starts_with("overheads.") || key == "stack.reached.block_lookup";
  return is_time ? config::short_text(Seconds(value)) : present::number(value);
}

void add_parameters(const sim::Fit& fit, present::Report& report) {
  present::Table table;
  table.columns = {"parameter", "prior", "fitted", "± (log)", ""};
  for (const sim::FittedParameter& parameter : fit.parameters) {
    // Less than half of the prior's variance gone: the traces hardly speak about it.
    const bool identified = parameter.log_sigma < 0.7 * parameter.prior_log_sigma;
    table.rows.push_back({parameter.key, present::Cell(value_text(parameter.key, parameter.prior), parameter.prior),
                          present::Cell(value_text(parameter.key, parameter.value), parameter.value),
                          present::Cell(present::number(parameter.log_sigma, 2), parameter.log_sigma),
                          identified ? "" : "not identified by these traces"});
    report.json["parameters"].push_back({{"key", parameter.key},
                                         {"prior", parameter.prior},
                                         {"value", parameter.value},
                                         {"log_sigma", parameter.log_sigma},
                                         {"identified", identified}});
  }
  report.tables.push_back(std::move(table));
}

[[nodiscard]] std::string error_text(const sim::ErrorSummary& error) {
  return std::to_string(error.count) + " steps, median |error| " + present::percent(error.median_abs_error) + ", P90 " +
         present::percent(error.p90_abs_error) + ", bias " + present::percent(error.bias);
}

void add_error(const char* key, const sim::ErrorSummary& error, present::Report& report) {
  report.tables.back().notes.push_back(std::string(key) + ": " + error_text(error));
  report.json[key] = {{"count", error.count},
                      {"median_abs_error", error.median_abs_error},
                      {"p90_abs_error", error.p90_abs_error},
                      {"bias", error.bias}};
}

// How well prices hold where something was measured, machine by machine and stack by stack.
void add_measured(study::Catalog& catalog, present::Report& report) {
  present::Table table;
  table.title = "90 % intervals: a measurement lies between the price / factor and the price x factor";
  table.columns = {"machine", "stack", "rows"};
  for (const auto& [name, kind] : sim::kPriceKinds)
    if (kind != sim::PriceKind::hardware) table.columns.emplace_back(name);
  for (const std::string& name : study::machine_names()) {
    const auto& calibration = catalog.machine(name).calibration;
    if (!calibration) continue;
    for (const auto& [stack, intervals] : calibration->intervals) {
      if (intervals.rows == 0) continue;
      std::vector<present::Cell> row{name, stack, std::to_string(intervals.rows)};
      present::Json entry{{"machine", name}, {"stack", stack}, {"rows", intervals.rows}};
      for (const auto& [word, kind] : sim::kPriceKinds) {
        const double factor = intervals.factors.at(kind);
        if (kind != sim::PriceKind::hardware) row.emplace_back(present::number(factor), factor);
        entry[std::string(word)] = factor;
      }
      table.rows.push_back(std::move(row));
      report.json["intervals"].push_back(std::move(entry));
    }
  }
  report.tables.push_back(std::move(table));
}

void run_on_points(const CalibrateChoices& choices) {
  if (choices.output.file.empty()) throw InputError("--output: name the folder for the machine and stack files");
  files::NewFolder folder(choices.output.file);
  present::Report report{"dculab/calibrate/1", {}, {}, present::Json::object()};
  study::PointSet set = study::read_point_set(choices.points);
  present::add_left_out_rows(study::left_out_points(set), report);
  const auto learned = study::learn_from(set);
  study::Catalog catalog = study::learned_catalog(learned);
  present::add_effects(*learned, report);
  study::Runs runs(learned);
  present::add_fitted_errors(set, runs, report);
  const std::vector<std::filesystem::path> files = catalog.write(folder.path());
  folder.keep();
  add_measured(catalog, report);
  for (const std::filesystem::path& file : files)
    report.json["files"].push_back((std::filesystem::path(choices.output.file) / file).string());
  report.tables.back().notes.push_back(
      "wrote " + std::to_string(files.size()) + " machine and stack files below " + choices.output.file +
      "; every command reads them with DCULAB_DATA=" + choices.output.file + " in the environment");
  present::show(report, {.format = choices.output.format, .file = "", .report_file = ""});
}

void run_calibrate(const CalibrateChoices& choices) {
  if (!choices.points.empty()) return run_on_points(choices);
  if (choices.traces.empty())
    throw InputError("nothing to learn from; give trace files with --machine, or --points FILE...");
  if (choices.machine.empty()) throw InputError("--machine: the traces are of a machine; name it");
  const sim::Machine base = study::resolve_machine(choices.machine);
  present::Report report{"dculab/calibrate/1", {}, {}, present::Json{{"machine", base.name}}};
  const std::vector<TraceStep> steps = read_steps(choices, base, report);
  ProgressBar bar;
  const std::string label = "fitting " + std::to_string(steps.size()) + " steps";
  const sim::FitProgress progress = [&bar, &label](double share) { bar.update(label, share); };
  sim::Fit fit;
  if (choices.hold_out > 0) {
    const sim::HoldOutScore score =
        sim::calibrate_with_hold_out(base, steps, choices.hold_out, static_cast<std::uint64_t>(choices.seed), progress);
    fit = score.fit;
    add_parameters(fit, report);
    add_error("fitted", fit.error, report);
    add_error("held_out", score.error, report);
    present::add_held_out_ops(score, steps, report);
    present::add_block_size_regret(score, steps, report);
  } else {
    fit = sim::calibrate(base, steps, progress);
    add_parameters(fit, report);
    add_error("fitted", fit.error, report);
  }
  bar.clear();
  const double factor = fit.machine.calibration->interval_factor;
  report.tables.front().notes.push_back("90 % interval of a prediction: × or ÷ " + present::number(factor) +
                                        " (conformal, five-fold cross-validation)");
  report.json["interval_factor"] = factor;
  study::cite_fit(fit.machine, std::to_string(steps.size()) + " measured steps");
  if (!choices.machine_file.empty())
    files::write_file_atomically(choices.machine_file, config::machine_yaml(fit.machine));
  present::show(report, choices.output);
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
  command->callback([choices] { run_calibrate(*choices); });
}

}  // namespace dculab::cli

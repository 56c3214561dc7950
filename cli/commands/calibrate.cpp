// `dculab calibrate`: fits a machine to traces and writes it.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <set>

#include "cli/commands/commands.hpp"
#include "cli/output/held_out_report.hpp"
#include "cli/output/output.hpp"
#include "cli/output/progress.hpp"
#include "cli/scenario/file_options.hpp"
#include "config/machine_file.hpp"
#include "config/trace_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "files/output.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/calibration/hold_out.hpp"
#include "study/calibrate/calibrated_machine.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::cli {
namespace {

struct CalibrateChoices {
  std::vector<std::string> traces;
  std::string machine;
  std::string machine_file;
  double hold_out = 0;
  int seed = 1;
  OutputOptions output;
};

// All traces' steps, without those that cannot be true.
[[nodiscard]] std::vector<TraceStep> read_steps(const CalibrateChoices& choices, const sim::Machine& machine,
                                                Report& report) {
  std::vector<TraceStep> accepted;
  for (const std::string& file : choices.traces) {
    const Trace trace = config::read_trace_file(file);
    if (machine.kind == lower::DeviceKind::cpu && trace.header.threads != 0 &&
        trace.header.threads != machine.compute_units)
      throw InputError(file, "was taken with " + std::to_string(trace.header.threads) + " threads, but " +
                                 machine.name + " describes " + std::to_string(machine.compute_units) +
                                 "; probe with --threads " + std::to_string(trace.header.threads));
    const auto violations = sim::floor_violations(machine, trace.steps);
    add_refusals(violations, trace, report);
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
  return is_time ? config::short_text(Seconds(value)) : number(value);
}

void add_parameters(const sim::Fit& fit, Report& report) {
  Table table;
  table.columns = {"parameter", "prior", "fitted", "± (log)", ""};
  for (const sim::FittedParameter& parameter : fit.parameters) {
    // Less than half of the prior's variance gone: the traces hardly speak about it.
    const bool identified = parameter.log_sigma < 0.7 * parameter.prior_log_sigma;
    table.rows.push_back({parameter.key, Cell(value_text(parameter.key, parameter.prior), parameter.prior),
                          Cell(value_text(parameter.key, parameter.value), parameter.value),
                          Cell(number(parameter.log_sigma, 2), parameter.log_sigma),
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
  return std::to_string(error.count) + " steps, median |error| " + percent(error.median_abs_error) + ", P90 " +
         percent(error.p90_abs_error) + ", bias " + percent(error.bias);
}

void add_error(const char* key, const sim::ErrorSummary& error, Report& report) {
  report.tables.back().notes.push_back(std::string(key) + ": " + error_text(error));
  report.json[key] = {{"count", error.count},
                      {"median_abs_error", error.median_abs_error},
                      {"p90_abs_error", error.p90_abs_error},
                      {"bias", error.bias}};
}

void run_calibrate(const CalibrateChoices& choices) {
  const sim::Machine base = study::resolve_machine(choices.machine);
  Report report{"dculab/calibrate/1", {}, {}, Json{{"machine", base.name}}};
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
    add_held_out_ops(score, steps, report);
    add_block_size_regret(score, steps, report);
  } else {
    fit = sim::calibrate(base, steps, progress);
    add_parameters(fit, report);
    add_error("fitted", fit.error, report);
  }
  bar.clear();
  const double factor = fit.machine.calibration->interval_factor;
  report.tables.front().notes.push_back("90 % interval of a prediction: × or ÷ " + number(factor) +
                                        " (conformal, five-fold cross-validation)");
  report.json["interval_factor"] = factor;
  study::cite_fit(fit.machine, std::to_string(steps.size()) + " measured steps");
  if (!choices.machine_file.empty())
    files::write_file_atomically(choices.machine_file, config::machine_yaml(fit.machine));
  show(report, choices.output);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("calibrate", "Fit a machine to traces");
  auto choices = std::make_shared<CalibrateChoices>();
  reads(command->add_option("traces", choices->traces, "Trace files, as `bench --trace` writes them"))->required();
  reads(command->add_option("--machine", choices->machine, "Machine to start from: a file, or a name under hwmodels"),
        study::try_find_machine)
      ->required();
  add_output_file(*command, "--machine-file", choices->machine_file, "Write the calibrated machine here");
  command->add_option("--hold-out", choices->hold_out, "Share of the steps to score instead of fit, 0 to 1")
      ->check(CLI::Range(0.0, 0.9));
  command->add_option("--seed", choices->seed, "Of the draw");
  add_output_options(*command, choices->output);
  command->callback([choices] { run_calibrate(*choices); });
}

}  // namespace dculab::cli

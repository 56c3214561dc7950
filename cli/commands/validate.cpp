// `dculab validate`: predicted against measured, for published points and for traces.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "cli/commands/commands.hpp"
#include "cli/machine/calibrated_machine.hpp"
#include "cli/output/leaning_report.hpp"
#include "cli/output/output.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/locate.hpp"
#include "cli/scenario/resolve.hpp"
#include "cli/validation/leave_one_out.hpp"
#include "cli/validation/point_scores.hpp"
#include "cli/validation/points_set.hpp"
#include "cli/validation/scores.hpp"
#include "config/trace_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/floor_check.hpp"

namespace dculab::cli {
namespace {

struct ValidateChoices {
  std::vector<std::string> traces;
  std::string machine;
  std::string points;
  std::string calibrate_on;
  std::vector<std::string> leave_one_out;
  int worst = 0;
  OutputOptions output;
};

// What was priced on a machine.
struct Priced {
  sim::Machine machine;
  std::vector<sim::Recipe> recipes;
};
using PricedByMachine = std::map<std::string, Priced>;

// A machine with the points that were priced on it: as each engine runs it, or as `calibration` sees each build there.
void keep_priced(PointSet& set, const sim::PointCalibration* calibration, PricedByMachine& priced) {
  for (ReadPoint& read : set.points) {
    if (!read.is_scored()) continue;
    const sim::Machine& file = set.machine_of(read);
    const sim::PointOrigin origin = origin_of(read.point);
    const std::string name = file.name + " with " + (calibration == nullptr ? origin.engine : origin.software);
    auto part = priced.find(name);
    if (part == priced.end()) {
      Priced fresh{calibration == nullptr ? file : calibration->machine(file, origin), {}};
      if (calibration != nullptr) cite_fit(fresh.machine, "published points");
      part = priced.emplace(name, std::move(fresh)).first;
    }
    part->second.recipes.push_back(std::move(read.priced.recipe));
  }
}

[[nodiscard]] std::string why_none(const Scores& scores) {
  for (const auto* left_out : {&scores.unpriced, &scores.refused})
    if (!left_out->empty()) return "line " + std::to_string(left_out->front().line) + ": " + left_out->front().reason;
  return "";
}

[[nodiscard]] Scores validate_points(const ValidateChoices& choices, PricedByMachine& priced, Report& report) {
  PointSet set = read_point_set(choices.points);
  std::optional<PointSet> known;
  std::optional<sim::PointCalibration> calibration;
  std::set<std::string> fitted;
  if (!choices.calibrate_on.empty()) {
    known = read_point_set(choices.calibrate_on);
    calibration = calibrate_on(*known, fitted, report);
  }
  const sim::PointCalibration* use = calibration ? &*calibration : nullptr;
  Scores scores = score_points(set, use, fitted);
  if (scores.rows.empty())
    throw InputError(choices.points,
                     set.points.empty() ? "has no points" : "no point of the file can be priced: " + why_none(scores));
  if (const auto seen =
          std::ranges::count_if(set.points, [&](const ReadPoint& read) { return fitted.contains(read.point.id); }))
    report.heading.push_back("warning: " + std::to_string(seen) +
                             " of these points were fitted, so that their errors " +
                             "are no forecast; --leave-one-out predicts each machine's from those of the others");
  keep_priced(set, use, priced);
  return scores;
}

[[nodiscard]] const char* phase_of(const Batch& batch) {
  int prefills = 0;
  for (const SequenceSlice& slice : batch.sequences) prefills += slice.phase == Phase::prefill ? 1 : 0;
  if (prefills == 0) return "decode";
  return prefills == static_cast<int>(batch.sequences.size()) ? "prefill" : "mixed";
}

[[nodiscard]] ScoredRow score_step(const TraceStep& step, int row, const sim::Recipe& recipe,
                                   const sim::Machine& machine) {
  const Seconds time = sim::price_recipe(machine, recipe);
  const sim::Confidence trust = sim::confidence(machine, step.model, step.options, recipe.steps.front().plan, time);
  return {.line = row,
          .id = step.id,
          .kind = phase_of(step.batch),
          .machine = machine.name,
          .model = step.model.name,
          .software = "",
          .measured = step.duration.value(),
          .predicted = time.value(),
          .low = trust.low.value(),
          .high = trust.high.value(),
          .unit = "s",
          .basis = std::string(sim::name(trust.basis)),
          .bound = sim::recipe_bound(machine, recipe),
          .note = "",
          .naive = 0};
}

void score_trace(const std::string& file, Priced& priced, Scores& scores) {
  const sim::Machine& machine = priced.machine;
  const Trace trace = config::read_trace_file(file);
  std::set<std::size_t> refused;
  for (const sim::FloorViolation& violation : sim::floor_violations(machine, trace.steps)) {
    refused.insert(violation.row);
    scores.refused.push_back({static_cast<int>(violation.row) + 1, trace.steps[violation.row].id,
                              violation.what + " took " + config::short_text(violation.measured) + ", below the " +
                                  config::short_text(violation.floor) + " that the " + violation.limit + " allows"});
  }
  for (std::size_t row = 0; row < trace.steps.size(); ++row) {
    if (refused.contains(row)) continue;
    const TraceStep& step = trace.steps[row];
    sim::Recipe& recipe = priced.recipes.emplace_back();
    recipe.steps.push_back({plan_step(step.model, step.options, step.batch), 1, {}});
    scores.rows.push_back(score_step(step, static_cast<int>(row) + 1, recipe, machine));
  }
}

// Below the summary: which assumed figures the predictions lean on, machine by machine.
void add_leanings_of(PricedByMachine& priced, Report& report) {
  for (auto& [name, part] : priced) {
    std::vector<const sim::Recipe*> recipes;
    for (const sim::Recipe& recipe : part.recipes) recipes.push_back(&recipe);
    part.machine.name = name;
    report.json["leans_on"][name] = add_leanings(part.machine, recipes, report);
  }
}

void run_validate(const ValidateChoices& choices) {
  Report report{"dculab/validate/1", {}, {}, Json::object()};
  Scores scores;
  PricedByMachine priced;
  if (!choices.leave_one_out.empty()) {
    add_left_out_scores(read_point_set(choices.points), choices.leave_one_out, report);
    show(report, choices.output);
    return;
  }
  if (!choices.points.empty()) {
    scores = validate_points(choices, priced, report);
  } else {
    if (choices.traces.empty())
      throw InputError("nothing to validate; give --points FILE, or trace files with --machine");
    if (choices.machine.empty()) throw InputError("--machine: a trace is predicted on a machine; name it");
    const sim::Machine machine = resolve_machine(choices.machine);
    Priced& part = priced.try_emplace(machine.name, Priced{machine, {}}).first->second;
    for (const std::string& file : choices.traces) score_trace(file, part, scores);
  }
  add_scores(scores, choices.worst, choices.output.format, report);
  add_leanings_of(priced, report);
  show(report, choices.output);
}

}  // namespace

void add_validate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("validate", "Predicted against measured, for traces and published points");
  auto choices = std::make_shared<ValidateChoices>();
  CLI::Option* traces =
      reads(command->add_option("traces", choices->traces, "Trace files, as `bench --trace` writes them"));
  reads(
      command->add_option("--machine", choices->machine, "Machine that the traces are predicted on: a file, or a name"),
      try_find_machine);
  CLI::Option* points =
      reads(command->add_option("--points", choices->points, "CSV of published points"))->option_text("FILE");
  points->excludes(traces);
  CLI::Option* calibrate_on =
      reads(command->add_option("--calibrate-on", choices->calibrate_on, "CSV of published points to learn from first"))
          ->option_text("FILE")
          ->needs(points);
  CLI::Option* leave_one_out = command
                                   ->add_option("--leave-one-out", choices->leave_one_out,
                                                "Predict the points of each machine, family of machines or program "
                                                "from those of all others: machine, family, "
                                                "software")
                                   ->delimiter(',')
                                   ->check(CLI::IsMember(left_out_groups()))
                                   ->needs(points)
                                   ->excludes(calibrate_on);
  command->add_option("--worst", choices->worst, "Rows in the table, the worst first; 0 = all")
      ->check(CLI::NonNegativeNumber)
      ->excludes(leave_one_out);
  add_report_options(*command, choices->output);
  command->callback([choices] { run_validate(*choices); });
}

}  // namespace dculab::cli

// `dculab validate`: predicted against measured, for published points and for traces.
#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <set>

#include "cli/calibrated_machine.hpp"
#include "cli/commands.hpp"
#include "cli/leaning_report.hpp"
#include "cli/locate.hpp"
#include "cli/output.hpp"
#include "cli/published_points.hpp"
#include "cli/resolve.hpp"
#include "cli/scores.hpp"
#include "config/machine_file.hpp"
#include "config/trace_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/study/point_calibration.hpp"

namespace dculab::cli {
namespace {

struct ValidateChoices {
  std::vector<std::string> traces;
  std::string machine;
  std::string points;
  std::string calibrate_on;
  int worst = 0;
  OutputOptions output;
};

constexpr std::size_t kFewestOfAnEngine = 5;

// A published point that can be priced, or why it cannot.
struct ReadPoint {
  config::PublishedPoint point;
  PricedAs priced;
  std::string unpriced;
  std::string refused;
};

// By name; those fitted to one engine's points also by name and engine.
using Machines = std::map<std::string, sim::Machine>;

// What was priced on a machine.
struct Priced {
  sim::Machine machine;
  std::vector<sim::Recipe> recipes;
};
using PricedByMachine = std::map<std::string, Priced>;

// "vLLM 0.14.0 vllm_flash_attn" -> "vLLM".
[[nodiscard]] std::string engine_of(const config::PublishedPoint& point) {
  return point.software.substr(0, point.software.find(' '));
}

[[nodiscard]] std::string with_engine(const config::PublishedPoint& point) {
  return point.machine + " with " + engine_of(point);
}

[[nodiscard]] std::string below_floor(const sim::Machine& machine, const ReadPoint& read) {
  const Seconds measured = read.priced.recipe.time(read.point.value);
  const Seconds floor = sim::recipe_floor(machine, read.priced.recipe);
  if (measured >= floor) return "";
  return "took " + config::short_text(measured) + ", below the " + config::short_text(floor) + " that the peaks of " +
         machine.name + " allow";
}

// Adds the machine of `point` to `machines` when it is known.
[[nodiscard]] const sim::Machine& machine_of(const config::PublishedPoint& point, Machines& machines) {
  const auto known = machines.find(point.machine);
  if (known != machines.end()) return known->second;
  const auto file = try_find_machine(point.machine);
  if (!file) throw InputError("no machine '" + point.machine + "' under hwmodels");
  return machines.emplace(point.machine, config::read_machine_file(*file)).first->second;
}

[[nodiscard]] std::vector<ReadPoint> read_points(const std::string& file, Machines& machines) {
  std::vector<ReadPoint> points;
  for (config::PublishedPoint& point : config::read_points_file(file)) {
    ReadPoint read{std::move(point), {}, "", ""};
    try {
      const sim::Machine& machine = machine_of(read.point, machines);
      read.priced = price_as(read.point, machine);
      read.refused = below_floor(machine, read);
    } catch (const InputError& error) {
      read.unpriced = error.what();
    }
    points.push_back(std::move(read));
  }
  return points;
}

void add_fitted(const std::string& name, const sim::Machine& machine, std::size_t points, Report& report) {
  Json entry{{"points", points}};
  std::string line = name + ": calibrated on " + std::to_string(points) + " points";
  if (machine.calibration) {
    entry["interval_factor"] = machine.calibration->interval_factor;
    line += ", interval × or ÷ " + number(machine.calibration->interval_factor);
  }
  for (const sim::Parameter& parameter : sim::parameters())
    entry["parameters"][std::string(parameter.key)] = sim::get(machine, parameter);
  report.heading.push_back(line);
  report.json["fitted"][name] = std::move(entry);
}

// Fits every machine with usable points in the file to them, and from there to those of each engine: its host work and
// its kernels are its own. Returns the ids that were used.
[[nodiscard]] std::set<std::string> calibrate(const std::string& file, Machines& machines, Report& report) {
  using Points = std::vector<sim::MeasuredRecipe>;
  std::map<std::string, Points> by_machine;
  std::map<std::string, std::pair<std::string, Points>> by_engine;  // machine with engine -> machine, points
  std::set<std::string> used;
  for (const ReadPoint& read : read_points(file, machines)) {
    if (!read.unpriced.empty() || !read.refused.empty()) continue;
    const sim::MeasuredRecipe point{std::string(config::name(read.point.kind)), read.priced.recipe,
                                    read.priced.recipe.time(read.point.value)};
    by_machine[read.point.machine].push_back(point);
    auto& [machine, points] = by_engine[with_engine(read.point)];
    machine = read.point.machine;
    points.push_back(point);
    used.insert(read.point.id);
  }
  for (const auto& [name, points] : by_machine) {
    machines[name] = sim::calibrate_to_points(machines[name], points);
    cite_fit(machines[name], std::to_string(points.size()) + " published points");
    add_fitted(name, machines[name], points.size(), report);
  }
  for (const auto& [name, fitted] : by_engine) {
    const auto& [machine, points] = fitted;
    if (points.size() < kFewestOfAnEngine) continue;
    machines[name] = sim::calibrate_to_points(machines[machine], points);
    cite_fit(machines[name], std::to_string(points.size()) + " published points");
    add_fitted(name, machines[name], points.size(), report);
  }
  return used;
}

[[nodiscard]] ScoredRow score_point(const ReadPoint& read, const sim::Machine& machine, bool was_fitted) {
  const sim::Recipe& recipe = read.priced.recipe;
  const std::string kind(config::name(read.point.kind));
  const Seconds time = sim::price_recipe(machine, recipe);
  const sim::Confidence trust = sim::recipe_confidence(machine, kind, recipe, time);
  const double low = recipe.figure(trust.low);
  const double high = recipe.figure(trust.high);
  return {.line = read.point.line,
          .id = read.point.id,
          .kind = kind,
          .machine = read.point.machine,
          .model = read.point.model,
          .software = read.point.software,
          .measured = read.point.value,
          .predicted = recipe.figure(time),
          .low = std::min(low, high),
          .high = std::max(low, high),
          .unit = read.point.unit,
          .basis = std::string(sim::name(was_fitted ? sim::Basis::measured : trust.basis)),
          .bound = sim::recipe_bound(machine, recipe),
          .note = read.priced.note};
}

// The engine's own, or the one that all engines share.
[[nodiscard]] std::string fitted_name(const config::PublishedPoint& point, const Machines& machines) {
  return machines.contains(with_engine(point)) ? with_engine(point) : point.machine;
}

[[nodiscard]] Scores score_points(const ValidateChoices& choices, PricedByMachine& priced, Report& report) {
  Machines machines;
  std::vector<ReadPoint> points = read_points(choices.points, machines);
  std::set<std::string> fitted;
  if (!choices.calibrate_on.empty()) fitted = calibrate(choices.calibrate_on, machines, report);
  Scores scores;
  for (ReadPoint& read : points) {
    if (!read.unpriced.empty()) {
      scores.unpriced.push_back({read.point.line, read.point.id, read.unpriced});
    } else if (!read.refused.empty()) {
      scores.refused.push_back({read.point.line, read.point.id, read.refused});
    } else {
      const std::string name = fitted_name(read.point, machines);
      scores.rows.push_back(score_point(read, machines.at(name), fitted.contains(read.point.id)));
      priced.try_emplace(name, Priced{machines.at(name), {}})
          .first->second.recipes.push_back(std::move(read.priced.recipe));
    }
  }
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
          .note = ""};
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
  if (!choices.points.empty()) {
    scores = score_points(choices, priced, report);
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
  CLI::Option* traces = command->add_option("traces", choices->traces, "Trace files, as `bench --trace` writes them");
  command->add_option("--machine", choices->machine, "Machine that the traces are predicted on: a file, or a name");
  CLI::Option* points =
      command->add_option("--points", choices->points, "CSV of published points")->option_text("FILE");
  points->excludes(traces);
  command->add_option("--calibrate-on", choices->calibrate_on, "CSV of published points to fit the machines to first")
      ->option_text("FILE")
      ->needs(points);
  command->add_option("--worst", choices->worst, "Rows in the table, the worst first; 0 = all")
      ->check(CLI::NonNegativeNumber);
  add_output_options(*command, choices->output);
  command->callback([choices] { run_validate(*choices); });
}

}  // namespace dculab::cli

// `dculab replay`: records the addresses that a GPU kernel touches and replays them through a machine's caches, beside
// what the closed form says.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "engine/recording/op_recorder.hpp"
#include "sim/memory/replay_comparison.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::cli {
namespace {

struct ReplayChoices {
  StepChoices step;
  std::vector<std::string> ops;
  std::vector<int> kv_heads;
  std::vector<int> block_sizes;
  bool reuse_distances = false;
  present::OutputOptions output;
};

struct ReplayedPoint {
  int kv_heads = 0;
  int block_size = 0;
  sim::ReplayComparison comparison;
};

[[nodiscard]] ReplayedPoint replay_point(const ReplayChoices& choices, const std::string& op, int kv_heads,
                                         int block_size) {
  StepChoices step = choices.step;
  step.kv_heads = kv_heads;
  step.block_size = block_size;
  const config::Scenario scenario = to_scenario(step);
  study::refuse_unsupported(scenario);
  study::require_one_device(scenario, "a replay");
  const sim::Machine machine = study::resolve_machine(scenario, scenario.machines.front());
  if (machine.kind != lower::DeviceKind::gpu)
    throw InputError(machine.name + " is a CPU; the kernels that are recorded are those of GPUs");
  const ModelShape model = study::resolve_model(scenario);
  const EngineOptions options = study::resolve_options(scenario, model, machine);
  const engine::RecordedOp recorded =
      engine::record_op(model, options, study::resolve_batch(scenario.workload, model, options), op,
                        machine.waves.wave_size, lower::dculab_gpu::units_of(machine));
  return {model.heads().num_key_value_heads, options.block_size,
          sim::compare_with_replay(machine, recorded.plan, recorded.launches,
                                   choices.reuse_distances ? sim::ReuseMeasurement::on : sim::ReuseMeasurement::off)};
}

// 0 stands for the default of the model or the engine.
[[nodiscard]] std::vector<ReplayedPoint> replay_points(ReplayChoices choices) {
  if (choices.ops.empty()) choices.ops = {"attention_" + choices.step.phase};
  if (choices.kv_heads.empty()) choices.kv_heads = {0};
  if (choices.block_sizes.empty()) choices.block_sizes = {0};
  std::vector<ReplayedPoint> points;
  ProgressBar bar;
  const double total = static_cast<double>(choices.ops.size() * choices.kv_heads.size() * choices.block_sizes.size());
  for (const std::string& op : choices.ops)
    for (const int heads : choices.kv_heads)
      for (const int block_size : choices.block_sizes) {
        points.push_back(replay_point(choices, op, heads, block_size));
        bar.update("replaying", static_cast<double>(points.size()) / total);
      }
  bar.clear();
  return points;
}

// To a tenth of a percent.
[[nodiscard]] std::string rounded_percent(double rate) { return present::percent(std::round(1000 * rate) / 1000); }

// What reaches the cache below the fastest, and DRAM. JSON and CSV have the rest.
[[nodiscard]] present::Table make_table(const std::vector<ReplayedPoint>& points, std::size_t num_ops) {
  present::Table table;
  if (num_ops > 1) table.columns.emplace_back("op");
  const auto& levels = points.front().comparison.levels;
  const std::string cache = levels[1].name, memory = levels.back().name;
  table.columns.insert(table.columns.end(), {"KV heads", "block", cache + " bytes", "closed", "ratio",
                                             memory + " bytes", "closed", "ratio", cache + " hit", "closed"});
  for (const ReplayedPoint& point : points) {
    const auto& here = point.comparison.levels;
    std::vector<present::Cell> row;
    if (num_ops > 1) row.emplace_back(point.comparison.op);
    row.insert(row.end(), {std::to_string(point.kv_heads), std::to_string(point.block_size)});
    for (const sim::ComparedLevel& level : {here[1], here.back()})
      row.insert(row.end(), {config::short_text(level.replayed), config::short_text(level.closed_form),
                             present::number(level.closed_form / level.replayed)});
    row.insert(row.end(), {rounded_percent(here[1].replayed_hit_rate), rounded_percent(here[1].closed_hit_rate)});
    table.rows.push_back(std::move(row));
  }
  table.notes = {"bytes that reach a level; closed: by the closed form; ratio: closed form / replayed"};
  return table;
}

[[nodiscard]] present::Table make_csv(const std::vector<ReplayedPoint>& points) {
  present::Table table;
  table.columns = {"op",       "num_key_value_heads", "block_size",    "kernel", "workgroups", "workgroups_per_unit",
                   "accesses", "coalescing",          "lines_per_load"};
  for (const sim::ComparedLevel& level : points.front().comparison.levels)
    for (const char* what : {"_replayed_bytes", "_closed_form_bytes", "_replayed_hit_rate", "_closed_form_hit_rate"})
      table.columns.push_back(level.name + what);
  for (const ReplayedPoint& point : points) {
    const sim::ReplayComparison& comparison = point.comparison;
    std::vector<present::Cell> row{comparison.op,
                                   std::to_string(point.kv_heads),
                                   std::to_string(point.block_size),
                                   comparison.kernel,
                                   std::to_string(comparison.workgroups),
                                   std::to_string(comparison.workgroups_per_unit),
                                   std::to_string(comparison.accesses),
                                   present::exact_number(comparison.coalescing),
                                   present::exact_number(comparison.lines_per_load)};
    for (const sim::ComparedLevel& level : comparison.levels)
      for (const double value :
           {level.replayed.value(), level.closed_form.value(), level.replayed_hit_rate, level.closed_hit_rate})
        row.emplace_back(present::exact_number(value));
    table.rows.push_back(std::move(row));
  }
  return table;
}

[[nodiscard]] present::Json make_json(const ReplayedPoint& point) {
  const sim::ReplayComparison& comparison = point.comparison;
  present::Json json = {{"op", comparison.op},
                        {"num_key_value_heads", point.kv_heads},
                        {"block_size", point.block_size},
                        {"kernel", comparison.kernel},
                        {"resources", comparison.resources},
                        {"accesses", comparison.accesses},
                        {"workgroups", comparison.workgroups},
                        {"workgroups_per_unit", comparison.workgroups_per_unit},
                        {"coalescing", comparison.coalescing},
                        {"lines_per_load", comparison.lines_per_load}};
  for (const sim::ComparedLevel& level : comparison.levels)
    json["levels"][level.name] = {{"replayed_bytes", level.replayed.value()},
                                  {"closed_form_bytes", level.closed_form.value()},
                                  {"replayed_hit_rate", level.replayed_hit_rate},
                                  {"closed_form_hit_rate", level.closed_hit_rate}};
  if (comparison.reuse)
    json["reuse_distances"] = {{"first_touches", comparison.reuse->first_touches},
                               {"touches", comparison.reuse->touches}};
  return json;
}

// One line per kernel: which, and how many of its workgroups a compute unit holds.
[[nodiscard]] std::vector<std::string> kernel_lines(const std::vector<ReplayedPoint>& points) {
  std::vector<std::string> lines;
  for (const ReplayedPoint& point : points) {
    const sim::ReplayComparison& comparison = point.comparison;
    std::string line = comparison.kernel + ", " + std::to_string(comparison.workgroups_per_unit) +
                       " workgroups/unit (" + comparison.resources + ")";
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

void run_replay(const ReplayChoices& choices) {
  const std::vector<ReplayedPoint> points = replay_points(choices);
  const StepChoices& step = choices.step;
  present::Report report{"dculab/replay/1", {}, {}, present::Json::object()};
  const std::string what = choices.ops.size() > 1 ? step.phase : points.front().comparison.op + ", " + step.phase;
  report.heading = {step.model + " on " + step.machine + ": " + what + ", batch " + std::to_string(step.batch) +
                    ", context " + std::to_string(step.context) + "; cold caches"};
  const std::vector<std::string> kernels = kernel_lines(points);
  report.heading.insert(report.heading.end(), kernels.begin(), kernels.end());
  report.json = {{"model", step.model}, {"machine", step.machine}, {"phase", step.phase},
                 {"batch", step.batch}, {"context", step.context}, {"points", present::Json::array()}};
  for (const ReplayedPoint& point : points) report.json["points"].push_back(make_json(point));
  report.tables.push_back(choices.output.format == present::Format::csv ? make_csv(points)
                                                                        : make_table(points, choices.ops.size()));
  present::show(report, choices.output);
}

}  // namespace

void add_replay(CLI::App& app) {
  CLI::App* command = app.add_subcommand("replay", "Replay the addresses of a GPU kernel through a machine's caches");
  auto choices = std::make_shared<ReplayChoices>();
  StepChoices& step = choices->step;
  step.batch = 4;
  reads(command->add_option("--model", step.model, "Model folder, or a name under scenarios/models"),
        study::try_find_model)
      ->required();
  reads(command->add_option("--machine", step.machine, "Machine file, or a name under hwmodels"),
        study::try_find_machine)
      ->required();
  command->add_option("--phase", step.phase, "prefill or decode")->check(CLI::IsMember({"prefill", "decode"}));
  command->add_option("--op", choices->ops, "Ops of the step plan; default: the attention of the phase")
      ->delimiter(',');
  command->add_option("--batch", step.batch, "Sequences")->check(at_least(1));
  command->add_option("--context", step.context, "Tokens per sequence")->check(at_least(1));
  command->add_option("--kv-heads", choices->kv_heads, "KV heads, several for a sweep")
      ->delimiter(',')
      ->check(at_least(1));
  command->add_option("--block-size", choices->block_sizes, "Tokens per KV block, several for a sweep")
      ->delimiter(',')
      ->check(at_least(1));
  command->add_option("--kv-cache-dtype", step.kv_cache_dtype, "f16, bf16, fp8_e4m3, fp8_e5m2");
  command->add_option("--weights", step.weights, "Format of the weights");
  command->add_option("--set", step.set, "key=value: any scenario key, e.g. attention.query_heads_per_workgroup=1");
  command->add_flag("--reuse-distances", choices->reuse_distances,
                    "Count reuse distances too (JSON: lines of the shared cache, bin i: below 2^i)");
  add_output_options(*command, choices->output);
  command->callback([choices] { run_replay(*choices); });
}

}  // namespace dculab::cli

// `dculab replay`: records the addresses that a GPU kernel touches and replays them through a machine's caches, beside
// what the closed form says.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/resolve.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "engine/recording/op_recorder.hpp"
#include "sim/memory/replay_comparison.hpp"

namespace dculab::cli {
namespace {

struct ReplayChoices {
  StepChoices step;
  std::string op;
  std::vector<int> kv_heads;
  std::vector<int> block_sizes;
  bool reuse_distances = false;
  OutputOptions output;
};

struct ReplayedPoint {
  int kv_heads = 0;
  int block_size = 0;
  sim::ReplayComparison comparison;
};

[[nodiscard]] ReplayedPoint replay_point(const ReplayChoices& choices, int kv_heads, int block_size) {
  StepChoices step = choices.step;
  step.kv_heads = kv_heads;
  step.block_size = block_size;
  const config::Scenario scenario = to_scenario(step);
  refuse_unsupported(scenario);
  const sim::Machine machine = resolve_machine(scenario.machines.front());
  if (machine.kind != sim::MachineKind::gpu)
    throw InputError(machine.name + " is a CPU; the kernels that are recorded are those of GPUs");
  const ModelShape model = resolve_model(scenario);
  const EngineOptions options = resolve_options(scenario, model, machine.kind);
  const std::string op =
      choices.op.empty() ? (step.phase == "decode" ? "attention_decode" : "attention_prefill") : choices.op;
  const engine::RecordedOp recorded =
      engine::record_op(model, options, resolve_batch(scenario.workload, model), op, machine.waves.wave_size);
  return {model.num_key_value_heads, options.block_size,
          sim::compare_with_replay(machine, recorded.op, recorded.launches,
                                   choices.reuse_distances ? sim::ReuseMeasurement::on : sim::ReuseMeasurement::off)};
}

// 0 stands for the default of the model or the engine.
[[nodiscard]] std::vector<ReplayedPoint> replay_points(const ReplayChoices& choices) {
  const std::vector<int> kv_heads = choices.kv_heads.empty() ? std::vector<int>{0} : choices.kv_heads;
  const std::vector<int> block_sizes = choices.block_sizes.empty() ? std::vector<int>{0} : choices.block_sizes;
  std::vector<ReplayedPoint> points;
  ProgressBar bar;
  const double total = static_cast<double>(kv_heads.size() * block_sizes.size());
  for (const int heads : kv_heads)
    for (const int block_size : block_sizes) {
      points.push_back(replay_point(choices, heads, block_size));
      bar.update("replaying", static_cast<double>(points.size()) / total);
    }
  bar.clear();
  return points;
}

[[nodiscard]] Table make_table(const std::vector<ReplayedPoint>& points) {
  Table table;
  table.columns = {"KV heads", "block"};
  const auto& levels = points.front().comparison.levels;
  for (const sim::ComparedLevel& level : levels)
    for (const char* what : {" replayed", " closed form"}) table.columns.push_back(level.name + what);
  for (std::size_t level = 0; level + 1 < levels.size(); ++level)
    for (const char* what : {" hit replayed", " hit closed form"}) table.columns.push_back(levels[level].name + what);
  table.columns.insert(table.columns.end(), {"coalescing", "lines per load", "workgroups per unit"});
  for (const ReplayedPoint& point : points) {
    const sim::ReplayComparison& comparison = point.comparison;
    std::vector<Cell> row{std::to_string(point.kv_heads), std::to_string(point.block_size)};
    for (const sim::ComparedLevel& level : comparison.levels)
      for (const Bytes bytes : {level.replayed, level.closed_form})
        row.emplace_back(config::short_text(bytes), bytes.value());
    for (std::size_t level = 0; level + 1 < comparison.levels.size(); ++level)
      for (const double rate : {comparison.levels[level].replayed_hit_rate, comparison.levels[level].closed_hit_rate})
        row.emplace_back(percent(rate, 3), rate);
    row.emplace_back(percent(comparison.coalescing, 3), comparison.coalescing);
    row.emplace_back(number(comparison.lines_per_load), comparison.lines_per_load);
    row.emplace_back(std::to_string(comparison.workgroups_per_unit));
    table.rows.push_back(std::move(row));
  }
  return table;
}

[[nodiscard]] Json make_json(const ReplayedPoint& point) {
  const sim::ReplayComparison& comparison = point.comparison;
  Json json = {{"num_key_value_heads", point.kv_heads}, {"block_size", point.block_size},
               {"kernel", comparison.kernel},           {"accesses", comparison.accesses},
               {"workgroups", comparison.workgroups},   {"workgroups_per_unit", comparison.workgroups_per_unit},
               {"coalescing", comparison.coalescing},   {"lines_per_load", comparison.lines_per_load}};
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

void run_replay(const ReplayChoices& choices) {
  const std::vector<ReplayedPoint> points = replay_points(choices);
  Report report{"dculab/replay/1", {}, {}, Json::object()};
  const sim::ReplayComparison& first = points.front().comparison;
  report.heading = {choices.step.model + " on " + choices.step.machine + ": " + first.op + ", " + choices.step.phase +
                        ", batch " + std::to_string(choices.step.batch) + ", context " +
                        std::to_string(choices.step.context) + "; bytes that reach each level, cold caches",
                    "kernel " + first.kernel};
  report.json["points"] = Json::array();
  for (const ReplayedPoint& point : points) report.json["points"].push_back(make_json(point));
  report.tables.push_back(make_table(points));
  show(report, choices.output);
}

}  // namespace

void add_replay(CLI::App& app) {
  CLI::App* command = app.add_subcommand("replay", "Replay the addresses of a GPU kernel through a machine's caches");
  auto choices = std::make_shared<ReplayChoices>();
  StepChoices& step = choices->step;
  step.batch = 4;
  command->add_option("--model", step.model, "Model folder, or a name under scenarios/models")->required();
  command->add_option("--machine", step.machine, "Machine file, or a name under hwmodels")->required();
  command->add_option("--phase", step.phase, "prefill or decode")->check(CLI::IsMember({"prefill", "decode"}));
  command->add_option("--op", choices->op, "Op of the step plan; default: the attention of the phase");
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

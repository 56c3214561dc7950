// `dculab replay`: records the addresses that a GPU kernel touches and replays them through a machine's caches, beside
// what the closed form says.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "present/measure/replay_report.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct ReplayChoices {
  study::StepQuestion step;
  std::vector<std::string> ops;
  std::vector<int> kv_heads;
  std::vector<int> block_sizes;
  bool reuse_distances = false;
  present::OutputOptions output;
};

// 0 stands for the default of the model or the engine.
[[nodiscard]] std::vector<study::OpToReplay> ops_of(ReplayChoices choices) {
  if (choices.ops.empty()) choices.ops = {"attention_" + choices.step.phase};
  if (choices.kv_heads.empty()) choices.kv_heads = {0};
  if (choices.block_sizes.empty()) choices.block_sizes = {0};
  std::vector<study::OpToReplay> ops;
  for (const std::string& op : choices.ops)
    for (const int heads : choices.kv_heads)
      for (const int block_size : choices.block_sizes) {
        choices.step.kv_heads = heads;
        choices.step.block_size = block_size;
        ops.push_back({study::step_scenario(choices.step), op});
      }
  return ops;
}

void run_replay(const ReplayChoices& choices) {
  const auto reuse = choices.reuse_distances ? sim::ReuseMeasurement::on : sim::ReuseMeasurement::off;
  ProgressBar bar;
  const std::vector<study::ReplayedOp> replayed = study::replay_ops(ops_of(choices), reuse, bar.updates());
  bar.clear();
  const study::StepQuestion& step = choices.step;
  present::show(present::replay_report({.model = step.model,
                                        .machine = step.machine,
                                        .phase = step.phase,
                                        .batch = step.batch,
                                        .context = step.context,
                                        .num_ops = choices.ops.size()},
                                       replayed),
                choices.output);
}

}  // namespace

void add_replay(CLI::App& app) {
  CLI::App* command = app.add_subcommand("replay", "Replay the addresses of a GPU kernel through a machine's caches");
  auto choices = std::make_shared<ReplayChoices>();
  study::StepQuestion& step = choices->step;
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
  add_examples(*command, {"dculab replay --model dculab-tiny --machine z100 --batch 2 --context 100"});
  command->callback([choices] { run_replay(*choices); });
}

}  // namespace dculab::cli

#include "tests/replay/replay_grid.hpp"

#include <cmath>
#include <map>
#include <utility>

#include "config/machine_file.hpp"
#include "engine/recording/op_recorder.hpp"
#include "lower/dculab_gpu/matrix_cores.hpp"

namespace dculab {
namespace {

using lower::dculab_gpu::Units;

constexpr int kWholeGroup = 0;
constexpr double kMostKvBytes = 80e6;  // that the workgroups of a case ask for: more takes more than a few seconds

[[nodiscard]] ModelShape shape_of(const ReplayCase& what) {
  ModelShape model;
  model.name = "grid";
  model.layers.assign(1, 0);
  model.kinds[0].gqa().heads = {what.num_heads, what.kv_heads, what.head_dim};
  model.hidden_size = 64;  // no matrix is recorded
  model.kinds[0].mlp.intermediate_size = 64;
  model.vocab_size = 256;
  model.max_position_embeddings = what.context;
  model.dtype = Dtype::f16;
  return model;
}

[[nodiscard]] EngineOptions options_of(const ReplayCase& what) {
  EngineOptions options;
  options.block_size = what.block_size;
  options.attention_split.partition_tokens = what.partition_tokens;
  options.attention_split.query_heads_per_workgroup = what.heads_per_workgroup;
  return options;
}

[[nodiscard]] double kv_bytes_requested(const ReplayCase& what) {
  const double requests = what.heads_per_workgroup == kWholeGroup ? 1.0 : what.num_heads / what.kv_heads;
  return requests * 4.0 * what.kv_heads * what.head_dim * what.context * what.batch;
}

[[nodiscard]] bool is_worth_recording(const ReplayCase& what) {
  const bool is_other_case = what.partition_tokens > 0 && what.context <= what.partition_tokens;  // nothing to split
  return !is_other_case && kv_bytes_requested(what) <= kMostKvBytes;
}

struct GridAxes {
  std::vector<int> kv_heads, block_sizes, head_dims, contexts, batches, heads_per_workgroup, partitions;
};

[[nodiscard]] std::vector<ReplayCase> cross(const GridAxes& axes, Phase phase) {
  std::vector<ReplayCase> cases{{.phase = phase}};
  const auto vary = [&cases](int ReplayCase::*value, const std::vector<int>& values) {
    std::vector<ReplayCase> varied;
    for (ReplayCase each : cases)
      for (const int one : values) {
        each.*value = one;
        varied.push_back(each);
      }
    cases = std::move(varied);
  };
  vary(&ReplayCase::kv_heads, axes.kv_heads);
  vary(&ReplayCase::block_size, axes.block_sizes);
  vary(&ReplayCase::head_dim, axes.head_dims);
  vary(&ReplayCase::context, axes.contexts);
  vary(&ReplayCase::batch, axes.batches);
  vary(&ReplayCase::heads_per_workgroup, axes.heads_per_workgroup);
  vary(&ReplayCase::partition_tokens, axes.partitions);
  std::erase_if(cases, [](const ReplayCase& each) { return !is_worth_recording(each); });
  return cases;
}

[[nodiscard]] std::vector<ReplayCase> all_of(const std::vector<GridAxes>& grids, Phase phase) {
  std::vector<ReplayCase> cases;
  for (const GridAxes& axes : grids)
    for (const ReplayCase& each : cross(axes, phase)) cases.push_back(each);
  return cases;
}

}  // namespace

std::string ReplayCase::text() const {
  return std::string(phase == Phase::decode ? "decode" : "prefill") + " heads " + std::to_string(num_heads) + "/" +
         std::to_string(kv_heads) + " of " + std::to_string(head_dim) + ", block " + std::to_string(block_size) +
         ", context " + std::to_string(context) + ", batch " + std::to_string(batch) +
         (heads_per_workgroup == kWholeGroup ? ", grouped" : ", per head") + ", partition " +
         std::to_string(partition_tokens);
}

double ReplayOutcome::dram_error() const {
  return comparison.levels.back().closed_form / comparison.levels.back().replayed - 1;
}

double ReplayOutcome::l2_hit_error() const {
  const sim::ComparedLevel& shared = comparison.levels[comparison.levels.size() - 2];
  return shared.closed_hit_rate - shared.replayed_hit_rate;
}

bool ReplayOutcome::dram_holds() const { return std::abs(dram_error()) <= 0.10; }

bool ReplayOutcome::l2_hit_holds() const { return std::abs(l2_hit_error()) <= 0.05; }

void replay_cases(const std::vector<ReplayCase>& cases, const std::vector<sim::Machine>& machines,
                  const std::function<void(const ReplayOutcome&)>& report) {
  for (const ReplayCase& what : cases) {
    const ModelShape model = shape_of(what);
    const EngineOptions options = options_of(what);
    std::map<std::pair<int, Units>, engine::RecordedOp> recorded;  // by wave size and units
    for (const sim::Machine& machine : machines) {
      const bool is_decode = what.phase == Phase::decode;
      const std::pair build{machine.waves.wave_size, is_decode ? Units::vector : lower::dculab_gpu::units_of(machine)};
      if (!recorded.contains(build))
        recorded.emplace(
            build, engine::record_op(model, options, uniform_batch(what.phase, what.batch, what.context),
                                     is_decode ? "attention_decode" : "attention_prefill", build.first, build.second));
      const engine::RecordedOp& op = recorded.at(build);
      report({what, machine.name, sim::compare_with_replay(machine, op.plan, op.launches, sim::ReuseMeasurement::off)});
    }
  }
}

ReplayScore score(const std::vector<ReplayOutcome>& outcomes) {
  ReplayScore result;
  const double share = 1.0 / static_cast<double>(outcomes.size());
  for (const ReplayOutcome& outcome : outcomes) {
    if (outcome.dram_holds()) result.dram_within_10_percent += share;
    if (outcome.l2_hit_holds()) result.l2_hit_within_5_points += share;
  }
  return result;
}

std::vector<ReplayCase> decode_grid(GridSize size) {
  if (size == GridSize::full)
    return cross({.kv_heads = {1, 2, 4, 8, 16, 32},
                  .block_sizes = {1, 8, 16, 32, 64, 128, 256},
                  .head_dims = {64, 80, 96, 128},
                  .contexts = {100, 512, 1500, 4096},
                  .batches = {1, 4, 16, 64},
                  .heads_per_workgroup = {kWholeGroup, 1},
                  .partitions = {0, 512}},
                 Phase::decode);
  const GridAxes common{.kv_heads = {1, 8, 32},
                        .block_sizes = {1, 16, 128},
                        .head_dims = {64, 128},
                        .contexts = {250, 1024},
                        .batches = {1, 8},
                        .heads_per_workgroup = {kWholeGroup, 1},
                        .partitions = {0}};
  const GridAxes odd_heads_and_large_batches{.kv_heads = {1, 8},
                                             .block_sizes = {16, 128},
                                             .head_dims = {80},
                                             .contexts = {20, 50},
                                             .batches = {4, 64},
                                             .heads_per_workgroup = {kWholeGroup, 1},
                                             .partitions = {0}};
  const GridAxes partitioned{.kv_heads = {1, 8},
                             .block_sizes = {16},
                             .head_dims = {80, 128},
                             .contexts = {600},
                             .batches = {1, 2},
                             .heads_per_workgroup = {kWholeGroup, 1},
                             .partitions = {512}};
  return all_of({common, odd_heads_and_large_batches, partitioned}, Phase::decode);
}

std::vector<ReplayCase> prefill_grid(GridSize size) {
  if (size == GridSize::full)
    return cross({.kv_heads = {1, 2, 8, 32},
                  .block_sizes = {1, 16, 128},
                  .head_dims = {64, 128},
                  .contexts = {128, 512, 1024},
                  .batches = {1, 4},
                  .heads_per_workgroup = {kWholeGroup},
                  .partitions = {0}},
                 Phase::prefill);
  const GridAxes two_sequences{.kv_heads = {8},
                               .block_sizes = {16},
                               .head_dims = {128},
                               .contexts = {200},
                               .batches = {2},
                               .heads_per_workgroup = {kWholeGroup},
                               .partitions = {0}};
  const GridAxes shared_and_own_heads{.kv_heads = {1, 32},
                                      .block_sizes = {128},
                                      .head_dims = {64},
                                      .contexts = {70},
                                      .batches = {1},
                                      .heads_per_workgroup = {kWholeGroup},
                                      .partitions = {0}};
  return all_of({two_sequences, shared_and_own_heads}, Phase::prefill);
}

std::vector<sim::Machine> grid_machines() {
  std::vector<sim::Machine> machines;
  for (const char* name : {"z100", "z100-coopt", "k100-ai", "mi50", "mi210", "a100-80gb-sxm"})
    machines.push_back(config::read_machine_file(std::string(DCULAB_SOURCE_DIR) + "/hwmodels/" + name + ".yaml"));
  return machines;
}

}  // namespace dculab

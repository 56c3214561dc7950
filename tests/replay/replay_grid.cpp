#include "tests/replay/replay_grid.hpp"

#include <cmath>
#include <optional>

#include "config/machine_file.hpp"
#include "engine/recording/op_recorder.hpp"

namespace dculab {
namespace {

constexpr int kGroupedHeads = 0;
constexpr double kLargestKvBytes = 80e6;  // of one case: recording takes a few seconds more

[[nodiscard]] ModelShape shape_of(const ReplayCase& what) {
  ModelShape model;
  model.name = "grid";
  model.num_hidden_layers = 1;
  model.num_attention_heads = what.num_heads;
  model.num_key_value_heads = what.kv_heads;
  model.head_dim = what.head_dim;
  model.hidden_size = 64;  // no matrix is recorded
  model.intermediate_size = 64;
  model.vocab_size = 256;
  model.max_position_embeddings = what.context;
  model.dtype = Dtype::f16;
  return model;
}

[[nodiscard]] EngineOptions options_of(const ReplayCase& what, const ModelShape& model) {
  EngineOptions options;
  options.block_size = what.block_size;
  options.tiling = gpu_kernel_tiling(model.group_size(), model.head_dim);
  options.tiling.partition_tokens = what.partition_tokens;
  options.tiling.query_heads_per_workgroup = what.heads_per_workgroup;
  return options;
}

[[nodiscard]] double kv_bytes(const ReplayCase& what) {
  return 4.0 * what.kv_heads * what.head_dim * what.context * what.batch;
}

}  // namespace

std::string ReplayCase::text() const {
  return std::string(phase == Phase::decode ? "decode" : "prefill") + " heads " + std::to_string(num_heads) + "/" +
         std::to_string(kv_heads) + " of " + std::to_string(head_dim) + ", block " + std::to_string(block_size) +
         ", context " + std::to_string(context) + ", batch " + std::to_string(batch) +
         (heads_per_workgroup == 0 ? ", grouped" : ", per head") + ", partition " + std::to_string(partition_tokens);
}

double ReplayOutcome::dram_error() const {
  return comparison.levels.back().closed_form / comparison.levels.back().replayed - 1;
}

double ReplayOutcome::l2_hit_error() const {
  const sim::ComparedLevel& shared = comparison.levels[comparison.levels.size() - 2];
  return shared.closed_hit_rate - shared.replayed_hit_rate;
}

void replay_cases(const std::vector<ReplayCase>& cases, const std::vector<sim::Machine>& machines,
                  const std::function<void(const ReplayOutcome&)>& report) {
  for (const ReplayCase& what : cases) {
    const ModelShape model = shape_of(what);
    const EngineOptions options = options_of(what, model);
    for (const int wave_size : {64, 32}) {
      std::optional<engine::RecordedOp> recorded;
      for (const sim::Machine& machine : machines) {
        if (machine.waves.wave_size != wave_size) continue;
        if (!recorded)
          recorded =
              engine::record_op(model, options, uniform_batch(what.phase, what.batch, what.context),
                                what.phase == Phase::decode ? "attention_decode" : "attention_prefill", wave_size);
        report({what, machine.name,
                sim::compare_with_replay(machine, recorded->op, recorded->launches, sim::ReuseMeasurement::off)});
      }
    }
  }
}

ReplayScore score(const std::vector<ReplayOutcome>& outcomes) {
  ReplayScore result;
  for (const ReplayOutcome& outcome : outcomes) {
    result.dram_within_10_percent += std::abs(outcome.dram_error()) <= 0.10 ? 1 : 0;
    result.l2_hit_within_5_points += std::abs(outcome.l2_hit_error()) <= 0.05 ? 1 : 0;
  }
  result.count = static_cast<int>(outcomes.size());
  result.dram_within_10_percent /= result.count;
  result.l2_hit_within_5_points /= result.count;
  return result;
}

std::vector<ReplayCase> decode_grid(GridSize size) {
  const bool full = size == GridSize::full;
  std::vector<ReplayCase> cases;
  for (const int kv_heads : full ? std::vector{1, 2, 4, 8, 16, 32} : std::vector{1, 8, 32})
    for (const int block_size : full ? std::vector{1, 8, 16, 32, 64, 128, 256} : std::vector{1, 16, 128})
      for (const int head_dim : full ? std::vector{64, 80, 96, 128} : std::vector{64, 128})
        for (const int context : full ? std::vector{100, 512, 1500, 4096} : std::vector{250, 1024})
          for (const int batch : full ? std::vector{1, 4, 16, 64} : std::vector{1, 8})
            for (const int heads_per_workgroup : {kGroupedHeads, 1})
              for (const int partition : full ? std::vector{0, 512} : std::vector{0}) {
                ReplayCase what;
                what.kv_heads = kv_heads;
                what.block_size = block_size;
                what.head_dim = head_dim;
                what.context = context;
                what.batch = batch;
                what.heads_per_workgroup = heads_per_workgroup;
                what.partition_tokens = partition;
                const double requests = heads_per_workgroup == 0 ? 1.0 : what.num_heads / kv_heads;
                const bool is_split = partition > 0 && context > partition;
                if (kv_bytes(what) * requests <= kLargestKvBytes && (partition == 0 || is_split)) cases.push_back(what);
              }
  return cases;
}

std::vector<ReplayCase> prefill_grid(GridSize size) {
  const bool full = size == GridSize::full;
  std::vector<ReplayCase> cases;
  for (const int kv_heads : full ? std::vector{1, 2, 8, 32} : std::vector{8})
    for (const int block_size : full ? std::vector{1, 16, 128} : std::vector{16})
      for (const int head_dim : full ? std::vector{64, 128} : std::vector{128})
        for (const int context : full ? std::vector{128, 512, 1024} : std::vector{200})
          for (const int batch : full ? std::vector{1, 4} : std::vector{2}) {
            ReplayCase what{.phase = Phase::prefill, .kv_heads = kv_heads, .head_dim = head_dim};
            what.block_size = block_size;
            what.context = context;
            what.batch = batch;
            cases.push_back(what);
          }
  return cases;
}

std::vector<sim::Machine> grid_machines() {
  std::vector<sim::Machine> machines;
  for (const char* name : {"z100", "z100-coopt", "k100-ai", "mi50", "mi210", "a100-80gb-sxm"})
    machines.push_back(config::read_machine_file(std::string(DCULAB_SOURCE_DIR) + "/hwmodels/" + name + ".yaml"));
  return machines;
}

}  // namespace dculab

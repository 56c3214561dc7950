// The kernels of policies of the KV cache: the closed form of their traffic against the replay of what they touch.
#include <cmath>
#include <string>

#include "core/kv/table.hpp"
#include "engine/recording/op_recorder.hpp"
#include "tests/replay/kernel_grid.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/retention_policies.hpp"

namespace dculab {
namespace {

struct PolicyCase {
  std::string op;
  KvRetention retention;
  int kv_heads, head_dim, block_size, batch;
  Dtype kv = Dtype::f16;
};

[[nodiscard]] ModelShape model_of(int kv_heads, int head_dim) {
  ModelShape model;
  model.name = "llama";
  model.layers.assign(1, 0);
  model.kinds[0].gqa().heads = {8, kv_heads, head_dim};
  model.hidden_size = 8 * head_dim;
  model.kinds[0].mlp.intermediate_size = 64;
  model.vocab_size = 200;
  model.max_position_embeddings = 4096;
  model.dtype = Dtype::f16;
  return model;
}

struct KiviCase {
  std::string op;
  Phase phase;
  int kv_heads, head_dim, block_size, batch, context;
  Dtype kv = Dtype::kivi4;
};

// Calls report(comparison, machine).
template <class Report>
void replay_kivi(const KiviCase& what, Report&& report) {
  EngineOptions options;
  options.block_size = what.block_size;
  options.kv_cache_dtype = what.kv;
  options.weights = {Dtype::f16, 0};
  const ModelShape model = model_of(what.kv_heads, what.head_dim);
  const Batch batch = uniform_batch(what.phase, what.batch, what.context);
  for (const sim::Machine& machine : kernel_machines()) {
    const engine::RecordedOp op =
        engine::record_op(model, options, batch, what.op, machine.waves.wave_size, lower::dculab_gpu::Units::vector);
    report(sim::compare_with_replay(machine, op.plan, op.launches, sim::ReuseMeasurement::off), machine.name);
  }
}

// A step in which every sequence is full. Calls report(comparison, machine).
template <class Report>
void replay_policy(const PolicyCase& what, Report&& report) {
  EngineOptions options;
  options.block_size = what.block_size;
  options.kv_cache_dtype = what.kv;
  options.kv_retention = what.retention;
  options.weights = {Dtype::f16, 0};
  const auto context = static_cast<int>(kv_capacity(what.retention, what.block_size)) + 1;
  Batch batch = uniform_batch(Phase::decode, what.batch, context, what.retention, what.block_size);
  for (SequenceSlice& sequence : batch.sequences)  // each at a position of its own
    sequence.num_evicted_tokens += static_cast<int>(sequence.id) * what.block_size;
  for (const sim::Machine& machine : kernel_machines()) {
    const engine::RecordedOp op = engine::record_op(model_of(what.kv_heads, what.head_dim), options, batch, what.op,
                                                    machine.waves.wave_size, lower::dculab_gpu::Units::vector);
    report(sim::compare_with_replay(machine, op.plan, op.launches, sim::ReuseMeasurement::off), machine.name);
  }
}

}  // namespace

TEST_CASE("sinks and H2O's sums: closed-form bytes are within 5 % of the replay", "[once]") {
  const PolicyCase cases[] = {{"shift_sink_keys", sinks_of(4, 60), 2, 128, 16, 3},
                              {"shift_sink_keys", sinks_of(32, 60), 8, 64, 16, 8, Dtype::fp8_e4m3},
                              {"attention_scores", hitters_of(300, 212), 8, 128, 16, 1},
                              {"attention_scores", hitters_of(200, 312), 2, 128, 16, 4},
                              {"attention_scores", hitters_of(800, 800), 4, 64, 64, 2, Dtype::bf16}};
  for (const PolicyCase& what : cases)
    replay_policy(what, [&](const sim::ReplayComparison& comparison, const std::string& machine) {
      INFO(what.op << ", " << what.kv_heads << " KV heads of " << what.head_dim << ", " << machine << ", "
                   << comparison.kernel);
      const auto& dram = comparison.levels.back();
      CAPTURE(dram.closed_form.value(), dram.replayed.value());
      CHECK(std::abs(dram.closed_form / dram.replayed - 1) <= 0.05);
      if (machine != "a100-80gb-sxm") CHECK(comparison.resources != "assumed");  // compiled for AMD's targets only
    });
}

TEST_CASE("KIVI caches: closed-form bytes are within 5 % of the replay", "[once]") {
  const KiviCase cases[] = {{"attention_decode", Phase::decode, 8, 128, 16, 2, 1500},
                            {"attention_decode", Phase::decode, 2, 64, 32, 4, 900, Dtype::kivi2},
                            {"attention_prefill", Phase::prefill, 2, 128, 16, 1, 400},
                            {"attention_prefill", Phase::prefill, 4, 64, 64, 2, 300, Dtype::kivi2},
                            {"rope_and_cache", Phase::decode, 8, 128, 16, 4, 640},
                            {"rope_and_cache", Phase::prefill, 2, 128, 32, 1, 320, Dtype::kivi2}};
  for (const KiviCase& what : cases)
    replay_kivi(what, [&](const sim::ReplayComparison& comparison, const std::string& machine) {
      INFO(what.op << ", " << what.kv_heads << " KV heads of " << what.head_dim << ", " << name(what.kv) << ", "
                   << machine << ", " << comparison.kernel);
      const auto& dram = comparison.levels.back();
      CAPTURE(dram.closed_form.value(), dram.replayed.value());
      CHECK(std::abs(dram.closed_form / dram.replayed - 1) <= 0.05);
    });
}

}  // namespace dculab

// What attention, KIVI caches, heavy hitters and activations cost a CPU beside bytes and FLOP, from the kernels' loops;
// how products are cut.
#include "core/kv/kivi.hpp"
#include "lower/dculab_cpu/geometry.hpp"
#include "lower/lower.hpp"
#include "model/plan_step.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower {
namespace {

constexpr int kKvHeads = 2, kHeads = 8, kHeadDim = 64;

ModelShape small_model() {
  ModelShape model;
  model.layers.assign(1, 0);
  model.kinds[0].gqa().heads = {kHeads, kKvHeads, kHeadDim};
  model.hidden_size = model.kinds[0].mlp.intermediate_size = kHeads * kHeadDim;
  model.vocab_size = 256;
  model.max_position_embeddings = 512;
  return model;
}

Device two_threads() {
  Device device;
  device.kind = DeviceKind::cpu;
  device.compute_units = 2;
  return device;
}

Launch launch_of(OpKind kind, const EngineOptions& options, const Batch& batch) {
  const StepPlan plan = plan_step(small_model(), options, batch);
  for (const Op& op : plan.ops)
    if (op.kind == kind) return lower(op, plan, two_threads());
  FAIL("no such op");
  return {};
}

EngineOptions with_cache(Dtype dtype) {
  EngineOptions options;
  options.activation_dtype = Dtype::f32;
  options.kv_cache_dtype = dtype;
  return options;
}

}  // namespace

TEST_CASE("a step that completes groups of a KIVI cache quantizes them value by value") {
  for (const Dtype dtype : {Dtype::kivi4, Dtype::kivi2}) {
    const EngineOptions options = with_cache(dtype);
    // 31 tokens of each group come from the residual, and are widened; one is new.
    const Launch completes = launch_of(OpKind::rope_and_cache, options, uniform_batch(Phase::decode, 3, 256));
    CHECK(completes.arithmetic.stored_values == Approx(3 * kKiviGroup * 2 * kKvHeads * kHeadDim));
    CHECK(completes.arithmetic.shaping_per_value == Approx(16 * (12 + 3 * 31.0 / 32)));
    CHECK(completes.grid.most_workgroups == Approx(3 * kKvHeads));  // tasks: a group and a KV head each
    const Launch prefill = launch_of(OpKind::rope_and_cache, options, uniform_batch(Phase::prefill, 1, 100));
    CHECK(prefill.arithmetic.stored_values == Approx(96 * 2 * kKvHeads * kHeadDim));
    CHECK(prefill.arithmetic.shaping_per_value == Approx(16 * 12));
    const Launch between = launch_of(OpKind::rope_and_cache, options, uniform_batch(Phase::decode, 3, 255));
    CHECK(between.arithmetic.stored_values == 0);
  }
  const Launch plain = launch_of(OpKind::rope_and_cache, with_cache(Dtype::f16), uniform_batch(Phase::decode, 3, 256));
  CHECK(plain.arithmetic.stored_values == 0);
}

TEST_CASE("new tokens of a KVQuant cache are quantized value by value, with a comparison for each bit of a code") {
  for (const Dtype dtype : {Dtype::kvquant4, Dtype::kvquant3, Dtype::kvquant2})
    for (const Batch& batch : {uniform_batch(Phase::decode, 3, 256), uniform_batch(Phase::prefill, 1, 100)}) {
      const Launch launch = launch_of(OpKind::rope_and_cache, with_cache(dtype), batch);
      CHECK(launch.arithmetic.stored_values ==
            Approx(static_cast<double>(batch.num_tokens()) * 2 * kKvHeads * kHeadDim));
      CHECK(launch.arithmetic.shaping_per_value == Approx(16 * (11 + 3 * bits(dtype))));
    }
}

TEST_CASE("heavy hitters are scored one head and token at a time, and K is widened for each head") {
  EngineOptions options = with_cache(Dtype::f16);
  options.kv_retention = {.policy = RetentionPolicy::heavy_hitters, .window_tokens = 128, .heavy_hitter_tokens = 128};
  const Launch scores = launch_of(OpKind::attention_scores, options, uniform_batch(Phase::decode, 3, 200));
  CHECK(scores.arithmetic.stored_values == Approx(3.0 * 200 * kHeads * kHeadDim));
  CHECK(scores.arithmetic.shaping_per_value == 1);
  CHECK(scores.arithmetic.softmax.value() == Approx(3.0 * 200 * kHeads * (10 + 10 * 16)));
}

TEST_CASE("critical blocks: both bounds of every block are multiplied with heads in fours, and each is compared") {
  EngineOptions options = with_cache(Dtype::f16);
  options.kv_retention = {.policy = RetentionPolicy::critical_blocks, .kv_budget = 0.25};
  for (const int block_size : {4, 16}) {
    options.block_size = block_size;
    const Batch batch = uniform_batch(Phase::decode, 3, 4096);
    const double blocks = 3 * 4096.0 / block_size, rows = blocks * kKvHeads, tasks = rows / 128;
    const Launch choice = launch_of(OpKind::choose_critical_blocks, options, batch);
    CHECK(choice.grid.workgroups == Approx(tasks));
    CHECK(choice.arithmetic.stored_values == Approx(rows * 2 * kHeadDim));
    CHECK(choice.arithmetic.multiply.value() == Approx(blocks * kHeads * 2 * kHeadDim * 2));  // groups of four
    CHECK(choice.arithmetic.softmax.value() == Approx(16 * (rows * (16 + 40) + tasks * 200)));
    CHECK(choice.accesses()[1].unique.value() == rows * 2 * kHeadDim * 2);
    CHECK(choice.accesses()[2].requests == kKvHeads);
    const Launch attention = launch_of(OpKind::attention_decode, options, batch);
    CHECK(attention.grid.walked_tokens == 3 * 1024.0 * kKvHeads);
    CHECK(attention.accesses()[0].unique.value() == 3 * 1024.0 * 2 * kKvHeads * kHeadDim * 2);
    CHECK(attention.accesses()[0].runs_in_step == 1);  // the KV heads of a block are not chosen together
    CHECK(attention.accesses()[2].requests == 1);      // each KV head reads its own list
    const Launch update = launch_of(OpKind::update_block_bounds, options, batch);
    CHECK(update.grid.workgroups == 3);
    CHECK(update.arithmetic.stored_values == 3.0 * kKvHeads * kHeadDim);
  }
}

TEST_CASE("decode attention scores whole vectors of tokens, and begins each walk anew") {
  const EngineOptions options = with_cache(Dtype::f16);
  const auto arithmetic = [&](int context) {
    return launch_of(OpKind::attention_decode, options, uniform_batch(Phase::decode, 3, context)).arithmetic;
  };
  const double tasks = 3 * kKvHeads, rows = 3 * kHeads;
  CHECK(arithmetic(48).softmax.value() == Approx(rows * (48 * 10 + 60 * 16) + tasks * 200 * 16));
  CHECK(arithmetic(40).softmax.value() == Approx(arithmetic(48).softmax.value()));
  CHECK(arithmetic(48).stored_values == Approx(2 * tasks * 48 * kHeadDim));
  CHECK(arithmetic(40).stored_values == Approx(tasks * (48 + 40) * kHeadDim));  // K in whole vectors, V not
  CHECK(arithmetic(40).multiply.value() == Approx(rows * 2 * (48 + 40) * kHeadDim));
}

TEST_CASE("activations with an exponential have its instructions, others none") {
  const EngineOptions options = with_cache(Dtype::f16);
  const Launch silu = launch_of(OpKind::activation_mul, options, uniform_batch(Phase::decode, 3, 40));
  CHECK(silu.arithmetic.stored_values == Approx(3.0 * kHeads * kHeadDim));
  CHECK(silu.arithmetic.shaping_per_value == 20);
  const Launch norm = launch_of(OpKind::rms_norm, options, uniform_batch(Phase::decode, 3, 40));
  CHECK(norm.arithmetic.stored_values == 0);
}

TEST_CASE("a task of a product takes as many panels as half of L2 holds, shared out evenly, and one where x fits") {
  using dculab_cpu::panels_per_task;
  const dculab_cpu::PackedProduct product{.panels = 40, .x_bytes = 1000, .panel_bytes = 100};
  CHECK(panels_per_task(product, 1000, 2) == 1);
  CHECK(panels_per_task(product, 999, 1) == 8);  // 9 at most: 5 tasks of 8,
  CHECK(panels_per_task(product, 999, 2) == 7);  // 6 of 7, the last of 5
  CHECK(panels_per_task(product, 999, 4) == 5);
  CHECK(panels_per_task(product, 99, 2) == 1);
  CHECK(panels_per_task({.panels = 3, .x_bytes = 1000, .panel_bytes = 100}, 999, 2) == 2);
}

}  // namespace dculab::lower

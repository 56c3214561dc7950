// Traffic, hit rates, Little's law and capacity against numbers worked out by hand.
#include <initializer_list>
#include <limits>

#include "lower/vllm/kernels.hpp"
#include "model/plan_step.hpp"
#include "sim/memory/bandwidth.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/memory/hit_rate.hpp"
#include "sim/memory/reuse.hpp"
#include "sim/memory/table_look_up.hpp"
#include "sim/memory/traffic.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

const Op& find_op(const StepPlan& plan, std::string_view name) {
  for (const Op& op : plan.ops)
    if (op.name == name) return op;
  FAIL("no such op");
  return plan.ops.front();
}

lower::Access kv_read(const StepPlan& plan) {
  const lower::Launch launch = lowered(mi50_like(), find_op(plan, "attention_decode"), plan);
  for (const lower::Access& access : launch.accesses())
    if (access.role == OperandRole::kv_read) return access;
  FAIL("no KV");
  return {};
}

TEST_CASE("short runs move whole lines, whatever the machine") {
  ModelShape model = tiny_llama();
  model.kinds[0].gqa().heads.head_dim = 16;  // a token of one head in F16: 32 bytes, half a line
  EngineOptions options;
  for (const auto& [block_size, factor] : {std::pair{1, 2.0}, {2, 1.0}, {16, 1.0}}) {
    options.block_size = block_size;
    const StepPlan plan = plan_step(model, options, uniform_batch(Phase::decode, 1, 256));
    CHECK(line_rounding(kv_read(plan), Bytes(64)) == factor);
  }
}

TEST_CASE("unused slots of the last block are not loaded") {
  EngineOptions options;
  options.block_size = 64;
  const StepPlan plan = plan_step(llama_3_8b(), options, uniform_batch(Phase::decode, 1, 100));
  CHECK(kv_read(plan).unique.value() == 100 * 2 * 8 * 128 * 2.0);  // of the 128 slots
  CHECK(line_rounding(kv_read(plan), Bytes(64)) == 1);
}

TEST_CASE("a byte stays while its reuse distance is below the capacity") {
  CHECK(hit_probability(Bytes{}, kMiB) == 1);
  CHECK(hit_probability(kMiB, kMiB) == 0.5);
  CHECK(hit_probability(0.25 * kMiB, kMiB) > 0.99);
  CHECK(hit_probability(10 * kMiB, kMiB) < 1.01e-4);
}

TEST_CASE("concurrent workgroups share one miss of a shared cache; later requests hit if the distance fits") {
  Reuse reuse{.requests = 8, .concurrent = 4, .compute_units = 60};
  reuse.first = reuse.first_local = reuse.own = Bytes(1e12);
  reuse.together = Bytes{};
  reuse.temporal = Bytes(1e12);
  // 8 requests, 4 at a time: two misses, one of them the first touch.
  const Arrivals cold = misses_of_shared(all_requests(reuse), reuse, kMiB);
  CHECK(cold.total() == Approx(2));
  reuse.temporal = Bytes{};
  CHECK(misses_of_shared(all_requests(reuse), reuse, kMiB).total() == Approx(1));
  // Private caches of 60 units see 8 different units: nothing comes back.
  CHECK(misses_of_private(all_requests(reuse), reuse, kMiB).total() == Approx(8));
  reuse.compute_units = 2;
  reuse.own = Bytes{};
  CHECK(misses_of_private(all_requests(reuse), reuse, kMiB).total() == Approx(2));
}

TEST_CASE("a model that fits in the last-level cache is read from there in every step, a larger one from DRAM") {
  const Machine machine = cpu_like();
  EngineOptions options;
  options.activation_dtype = Dtype::f32;
  for (const auto& [hidden, least, most] : {std::tuple{256, 0.95, 1.0}, {2048, 0.0, 0.01}}) {
    ModelShape model = tiny_llama();
    model.hidden_size = hidden;
    model.kinds[0].mlp.intermediate_size = 3 * hidden;
    model.kinds[0].gqa().heads.num_attention_heads = hidden / model.kinds[0].gqa().heads.head_dim;
    const StepPlan plan = plan_step(model, options, uniform_batch(Phase::decode, 1, 64));
    const Op& op = find_op(plan, "down_proj");
    const Parallelism parallel = parallelism(machine, op);
    Bytes footprint;
    for (const Op& each : plan.ops) footprint += each.count * each.unique_bytes();
    const Reuse weights = reuse_of(machine, op, parallel, footprint)[0];
    const double hit = 1 - misses_of_shared(all_requests(weights), weights, machine.memory[2].size).total();
    CHECK(hit >= least);
    CHECK(hit <= most);
  }
}

TEST_CASE("T_eff is H * T_cache + (1 - H) * T_DRAM") {
  Machine machine = mi50_like();
  machine.memory.erase(machine.memory.begin());
  const PerLevel<Seconds> latencies = mean_latencies(machine, {Bytes(100), Bytes(30)});
  CHECK(latencies[0].value() == Approx(0.7 * 150e-9 + 0.3 * 350e-9));
  CHECK(latencies[1].value() == Approx(350e-9));
}

TEST_CASE("what all units share is drawn by workgroups, wherever they run: only a last round may leave some of it") {
  Machine machine = mi50_like();
  machine.compute_units = 100;
  const auto drawing = [&machine](double workgroups, double per_unit) {
    lower::Launch launch;
    launch.grid.workgroups = launch.grid.most_workgroups = workgroups;
    launch.workgroups_per_unit = per_unit;
    return drawing_units(machine, parallelism(machine, launch));
  };
  CHECK(drawing(60, 2) == 60);
  CHECK(drawing(101, 2) == 100);
  CHECK(drawing(200, 2) == 100);
  CHECK(drawing(250, 2) == Approx(100 * 250.0 / (200 + 100)));  // 50 that start when 200 have ended take a share each
  CHECK(drawing(128, 1) == Approx(64));                         // as active units
  lower::Launch ragged;
  ragged.grid.workgroups = ragged.grid.most_workgroups = 150;
  ragged.workgroups_per_unit = 2;
  ragged.grid.walked_tokens = 8000, ragged.grid.longest_walk_tokens = 1000;
  CHECK(drawing_units(machine, parallelism(machine, ragged)) == 8);
}

TEST_CASE("Little's law: outstanding lines over latency, per active unit") {
  Machine machine = cpu_like();
  machine.sustained.dram_bandwidth = 1;
  CHECK(deliverable(machine, 3, 1).value() == Approx(17e9));
  CHECK(deliverable(machine, 3, 2).value() == Approx(31e9));
  machine.memory[3].outstanding = 10;
  machine.memory[3].latency = Seconds(160e-9);
  CHECK(deliverable(machine, 3, 1).value() == Approx(10 * 64 / 160e-9));
  CHECK(deliverable(machine, 3, 2).value() == Approx(2 * 10 * 64 / 160e-9));
}

TEST_CASE("bytes in flight: full waves of four 16-byte loads, less when a kernel walks short KV blocks one by one") {
  Machine machine = mi50_like();
  const auto per_wave = [&](int block_size) {
    EngineOptions options;
    options.block_size = block_size;
    const StepPlan plan = plan_step(llama_3_8b(), options, uniform_batch(Phase::decode, 64, 2048));
    const Op& op = find_op(plan, "attention_decode");
    const Parallelism parallel = parallelism(machine, op, plan);
    return bytes_in_flight(machine, op, parallel, plan).value() / (parallel.concurrent * 4);
  };
  const std::initializer_list<int> sizes{1, 2, 4, 8, 16, 64};
  for (const int size : sizes) CHECK(per_wave(size) == Approx(64 * 4 * 16));  // ours looks up a step's tokens at once
  machine.stack.kernels =
      lower::Kernels{.matmul = {}, .attention_prefill = {}, .attention_decode = {&lower::vllm::kPagedAttention}};
  for (const int size : sizes) CHECK(per_wave(size) == Approx(std::min(64 * 4 * 16, 2 * size * 128 * 2)));
  const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 1, 64));
  CHECK(bytes_in_flight(cpu_like(), plan.ops.front(), {}).value() == std::numeric_limits<double>::infinity());
}

TEST_CASE("a look-up waits for the nearest cache, and for the next one in each new line of the block table") {
  Machine machine = mi50_like();
  machine.stack.reached.block_lookup = Seconds(10e-9);
  const double first = machine.memory[0].latency.value(), next = machine.memory[1].latency.value();
  const double per_line = machine.memory[0].line.value() / 4;
  CHECK(table_look_up(machine, 1).value() == Approx(first + (next - first) / per_line + 10e-9));
  CHECK(table_look_up(machine, per_line).value() == Approx(next + 10e-9));
  CHECK(table_look_up(machine, 100 * per_line).value() == Approx(next + 10e-9));
  Machine cpu = cpu_like();
  cpu.stack.reached.block_lookup = Seconds(10e-9);
  CHECK(table_look_up(cpu, 4).value() == Approx(10e-9));
}

TEST_CASE("what has left the windows of layers makes room where the program frees it") {
  ModelShape model = llama_3_8b();
  LayerKind windowed = model.kinds[0];
  std::get<Gqa>(windowed.attention).sliding_window = 1024;
  const LayerKind full = model.kinds[0];
  model.layers.clear();
  model.kinds.clear();
  for (int layer = 0; layer < 32; ++layer) add_layer(model, layer % 4 == 3 ? full : windowed);
  Machine machine = mi50_like();
  const EngineOptions options;
  const Capacity whole = capacity(machine, model, options, 8192);
  CHECK(whole.max_sequences == whole.num_blocks / 512);
  machine.stack.frees_windows = true;
  const Capacity freed = capacity(machine, model, options, 8192);
  CHECK(freed.num_blocks == whole.num_blocks);
  CHECK(freed.max_sequences == freed.num_blocks / ((1024 + (8192 - 1024) / 4) / 16));
  CHECK(capacity(machine, model, options, 1024).max_sequences == whole.num_blocks / 64);
  EngineOptions remembering;
  remembering.enable_prefix_caching = true;
  CHECK(capacity(machine, model, remembering, 8192).max_sequences == whole.max_sequences);
}

TEST_CASE("how many sequences fit: whole blocks, after weights and activations") {
  Machine machine = mi50_like();
  EngineOptions options;
  options.block_size = 16;
  const Capacity fits = capacity(machine, llama_3_8b(), options, 2048);
  CHECK(fits.weights.value() == 2.0 * 8030261248);
  // 2048 tokens * (3 * 4096 hidden + 4096 + 2 * 1024 + 3 * 14336) F16, and 256 rows of logits in F32.
  CHECK(fits.activations.value() == 2048.0 * (3 * 4096 + 4096 + 2048 + 3 * 14336) * 2 + 256.0 * 128256 * 4);
  CHECK(fits.block_bytes.value() == 16.0 * 131072);
  // Sums of 32 heads in 16 partitions of 8192 tokens, of 256 sequences.
  CHECK(fits.buffers.value() == 256.0 * 32 * 16 * (128 + 2) * 4);
  const double budget =
      32 * 1073741824.0 * 0.9 - fits.weights.value() - fits.activations.value() - fits.buffers.value();
  CHECK(fits.num_blocks == static_cast<std::int64_t>(budget / (16 * 131072.0)));
  CHECK(fits.max_sequences == fits.num_blocks / 128);
  CHECK(fits.wasted_share == 0);

  options.block_size = 256;
  const Capacity coarse = capacity(machine, llama_3_8b(), options, 2049);
  CHECK(coarse.max_sequences == coarse.num_blocks / 9);
  CHECK(coarse.wasted_share == Approx(255.0 / 2304));

  options.kv_cache_dtype = Dtype::kivi4;
  options.max_num_seqs = 32;
  options.kv_residual_tokens = 96;
  const Capacity kivi = capacity(machine, llama_3_8b(), options, 16);
  CHECK(kivi.kept_apart.value() == 32 * 96 * 131072.0);  // 96 tokens in F16 for each of 32 sequences
  CHECK(kivi.kv_budget.value() == Approx(32 * 1073741824.0 * 0.9 - kivi.weights.value() - kivi.activations.value() -
                                         kivi.kept_apart.value() - kivi.buffers.value()));
  // Each of more than 32 sequences takes its 96 tokens and its block out of what is left.
  const double of_each = 96 * 131072.0 + kivi.block_bytes.value();
  CHECK(kivi.max_sequences == static_cast<std::int64_t>((kivi.kept_apart + kivi.kv_budget).value() / of_each));
  CHECK(kivi.max_sequences > 32);
  options.max_num_seqs = 4096;  // more than fit: what is reserved leaves less for blocks
  CHECK(capacity(machine, llama_3_8b(), options, 16).max_sequences < kivi.max_sequences);
  options.max_num_seqs = 32;

  machine.memory.back().size = 8 * kGiB;
  CHECK(capacity(machine, llama_3_8b(), options, 1).num_blocks == 0);
}

}  // namespace
}  // namespace dculab::sim::test

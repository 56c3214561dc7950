// Prices worked out by hand, and the executor that hands them out.
#include "sim/cost/step_price.hpp"

#include <algorithm>

#include "lower/gemm/kernels.hpp"
#include "model/plan_step.hpp"
#include "model/shard.hpp"
#include "sim/serving/simulated_executor.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// No losses: every share 1, no overheads.
Machine ideal(Machine machine) {
  machine.stack.reached = {1, 1, 1, 1, 1, 1, 1, {}, 1};
  machine.sustained = {1, 1, 0.5};
  machine.overheads = {{}, {}, {}, {}};
  return machine;
}

// One row, 64 column tiles, and nothing to convert.
Op stream_weights(double bytes, double flops, Dtype dtype = Dtype::f16) {
  Op op;
  op.kind = OpKind::matmul;
  op.m = 1;
  op.n = 8192;
  op.k = 8192;
  op.weight_format.dtype = op.activation_dtype = dtype;
  op.flops = FlopCount(flops);
  op.add({OperandRole::weight, Bytes(bytes), Bytes(16384)});
  op.add({OperandRole::activation, Bytes(16), Bytes(16)});
  return op;
}

Machine with_vendor_gemm(Machine machine) {
  machine.stack.kernels.matmul = {&lower::gemm::kCublas};
  return machine;
}

// 2048 rows of 4096 by 4096, a vendor's tiles of 128 x 256.
Op prefill_matmul() {
  EngineOptions options;
  const StepPlan plan = plan_step(llama_3_8b(), options, uniform_batch(Phase::prefill, 1, 2048));
  return *std::find_if(plan.ops.begin(), plan.ops.end(), [](const Op& op) { return op.name == "o_proj"; });
}

TEST_CASE("a matrix-vector product takes its bytes over the bandwidth") {
  const Machine machine = with_vendor_gemm(ideal(mi50_like()));
  const Op op = stream_weights(1e9, 1e9);
  const OpPrice price = price_op(machine, op, Bytes(1e11));
  CHECK(price.seconds.value() == Approx(1e9 / 1024e9).epsilon(1e-4));
  CHECK(name(price.bound, machine) == "DRAM");
  CHECK(price.bytes[2].value() == Approx(1e9));
  CHECK(price.floor.value() == Approx(1e9 / 1024e9));
}

TEST_CASE("at the ridge compute and memory agree, on either side the larger is the bound") {
  Machine machine = with_vendor_gemm(ideal(mi50_like()));
  const double ridge = 26.8e12 / 1024e9;  // FLOP/byte
  const OpPrice at = price_op(machine, stream_weights(1e9, ridge * 1e9), Bytes(1e14));
  CHECK(at.compute.value() == Approx(at.memory.value()));
  CHECK(at.seconds.value() == Approx(at.memory.value()));
  CHECK(name(price_op(machine, stream_weights(1e9, 0.9 * ridge * 1e9), Bytes(1e14)).bound, machine) == "DRAM");
  CHECK(name(price_op(machine, stream_weights(1e9, 1.1 * ridge * 1e9), Bytes(1e14)).bound, machine) == "compute");
  machine.stack.reached.matmul_overlap = 0.8;
  machine.memory.erase(machine.memory.begin(), machine.memory.begin() + 2);
  machine.memory[0].latency = Seconds(1e-12);
  const OpPrice smooth = price_op(machine, stream_weights(1e9, ridge * 1e9), Bytes(1e14));
  CHECK(smooth.seconds.value() == Approx(1.2 * smooth.memory.value()).epsilon(1e-3));
}

TEST_CASE("a matmul hides its cache reads behind arithmetic, on Hopper DRAM's too") {
  const auto price = [](Machine machine) {
    machine.stack.reached.matmul_overlap = 0.5;
    return price_op(with_vendor_gemm(machine), prefill_matmul(), Bytes(1e14));
  };
  Machine slow_cache = a100_like();
  slow_cache.memory[1].bandwidth = 0.75 * slow_cache.memory[1].bandwidth;
  CHECK(price(slow_cache).compute > price(slow_cache).memory);
  CHECK(price(slow_cache).seconds == price(a100_like()).seconds);

  Machine slow_dram = a100_like();
  slow_dram.memory[2].bandwidth = 0.5 * slow_dram.memory[2].bandwidth;
  CHECK(price(slow_dram).seconds > price(a100_like()).seconds);
  Machine hopper = hopper_like();
  Machine slow_hopper = hopper;
  slow_hopper.memory[2].bandwidth = slow_dram.memory[2].bandwidth;
  CHECK(price(slow_hopper).compute > price(slow_hopper).memory);
  CHECK(price(slow_hopper).seconds == price(hopper).seconds);
}

TEST_CASE("attention on a CPU waits for what comes from DRAM, and computes before and after") {
  Machine machine = cpu_like();
  const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 16, 2048));
  const auto attention = [&] {
    const StepPrice step = price_step(machine, plan);
    const auto op = std::ranges::find(plan.ops, OpKind::attention_decode, &Op::kind);
    return step.ops[static_cast<std::size_t>(op - plan.ops.begin())];
  };
  const OpPrice price = attention();
  machine.memory.back().bandwidth = machine.memory.back().bandwidth_per_unit = BytesPerSecond(1e30);
  const OpPrice without = attention();
  CHECK(price.in_turn.value() == Approx(price.memory.value()));
  CHECK(price.in_turn > Seconds{});
  CHECK(price.seconds.value() == Approx((without.seconds + price.in_turn).value()));
}

TEST_CASE("weights resident in a cache come at its bandwidth") {
  const Machine machine = ideal(cpu_like());
  const OpPrice price = price_op(machine, stream_weights(12e6, 1, Dtype::f32), Bytes(12e6));
  CHECK(name(price.bound, machine) == "L3");
  CHECK(price.seconds.value() == Approx(12e6 / 56e9).epsilon(0.02));  // two threads, 28 GB/s each
}

TEST_CASE("small ops are bound by their launch, and on a CPU stay with the calling thread") {
  EngineOptions options;
  const StepPlan plan = plan_step(tiny_llama(), options, uniform_batch(Phase::decode, 1, 16));
  const Machine gpu = mi50_like();
  const StepPrice on_gpu = price_step(gpu, plan);
  CHECK(name(on_gpu.ops[1].bound, gpu) == "launch");
  CHECK(on_gpu.ops[1].launch == gpu.overheads.kernel_launch + gpu.overheads.workgroup_start);
  const StepPrice on_cpu = price_step(cpu_like(), plan);
  CHECK(on_cpu.ops[1].parallel.team == Team::caller);
  CHECK(on_cpu.ops[1].seconds < cpu_like().overheads.kernel_launch);
  CHECK(on_cpu.ops.back().parallel.team == Team::all);
}

TEST_CASE("a split context costs a second launch") {
  EngineOptions options;
  const Machine machine = mi50_like();
  const auto launch = [&](int context) {
    const StepPlan plan = plan_step(llama_3_8b(), options, uniform_batch(Phase::decode, 1, context));
    return price_step(machine, plan).ops[4].launch;
  };
  CHECK(launch(1024) - launch(512) == machine.overheads.kernel_launch);
}

TEST_CASE("a product of few tiles is split along k where that is cheaper, for a second launch and its sums") {
  Machine machine = with_vendor_gemm(a100_like());
  Op op = prefill_matmul();  // 16 x 16 tiles
  const auto tiles = static_cast<double>(tile_workgroups(machine, op));
  CHECK(price_op(machine, op, Bytes(1e14)).parallel.workgroups == tiles);
  op.m = 256;  // 2 x 16
  op.flops = FlopCount(op.flops.value() / 8);
  op.operand_storage[1].unique = op.operand_storage[1].unique / 8.0;
  const OpPrice price = price_op(machine, op, Bytes(1e14));
  const double parts = price.parallel.workgroups / 32;
  CHECK(parts == 3);  // 96 of 108 units
  CHECK(price.launch ==
        2 * machine.overheads.kernel_launch + price.parallel.rounds * machine.overheads.workgroup_start);
  CHECK(price.seconds >= price.launch + price.compute + split_k_reduction_time(machine, op, parts));
  machine.overheads.kernel_launch = Seconds(1);
  CHECK(price_op(machine, op, Bytes(1e14)).parallel.workgroups == 32);
}

TEST_CASE("look-ups are shared by the workgroups in flight") {
  Machine machine = cpu_like();
  machine.stack.reached.block_lookup = Seconds(10e-9);
  EngineOptions options;
  options.block_size = 1;
  const StepPlan plan = plan_step(tiny_llama(), options, uniform_batch(Phase::decode, 1, 100));
  // 100 blocks for each of 8 KV heads, two threads.
  CHECK(price_step(machine, plan).ops[4].lookups.value() == Approx(8 * 100 * 10e-9 / 2));
}

TEST_CASE("query heads of a group that share a workgroup save L2 traffic, and time where L2 is the bound") {
  const Machine machine = mi50_like();
  EngineOptions options;
  Seconds before;
  for (const int heads : {4, 2, 1}) {
    options.attention_split.query_heads_per_workgroup = heads;
    const StepPlan plan = plan_step(llama_3_8b(), options, uniform_batch(Phase::decode, 64, 2048));
    const OpPrice price = price_step(machine, plan).ops[4];
    CHECK(price.bytes[1].value() == Approx(4.0 / heads * 64 * 2048 * 8 * 128 * 2 * 2).epsilon(0.03));
    CHECK(price.seconds > before);
    before = price.seconds;
  }
}

TEST_CASE("a step is the sum of its ops and the host's time") {
  Machine machine = mi50_like();
  machine.overheads.host_per_step = Seconds(1e-3);
  machine.overheads.host_per_sequence = Seconds(1e-5);
  const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 7, 100));
  const StepPrice price = price_step(machine, plan);
  Seconds sum = Seconds(1e-3) + 7 * Seconds(1e-5);
  for (std::size_t op = 0; op < plan.ops.size(); ++op) sum += plan.ops[op].count * price.ops[op].seconds;
  CHECK(price.seconds.value() == Approx(sum.value()));
}

TEST_CASE("the executor reports the predicted step, and charges block copies to the next one") {
  const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 2, 100));
  SimulatedExecutor executor(mi50_like(), llama_3_8b(), {});
  const StepResult first = executor.run(plan);
  CHECK(first.duration == price_step(mi50_like(), plan).seconds);
  REQUIRE(first.op_durations.size() == plan.ops.size());
  CHECK(first.op_durations[2] == 32 * executor.price().ops[2].seconds);
  const std::vector<BlockCopy> copies(3);
  executor.copy_blocks(copies);
  const double copied = 2.0 * 3 * 16 * 131072;  // bytes read and written
  CHECK((executor.run(plan).duration - first.duration).value() == Approx(3e-6 + copied / (0.85 * 1024e9)));
  CHECK(executor.run(plan).duration == first.duration);
}

TEST_CASE("swapped blocks cross the host's link piece by piece, on a CPU its memory") {
  const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 2, 100));
  Machine machine = mi50_like();
  CHECK_FALSE(can_swap(machine));
  machine.host_link = 16 * kGBs;
  REQUIRE(can_swap(machine));
  const double bytes = 5.0 * 16 * 131072;
  for (const Machine& each : {machine, cpu_like()}) {
    SimulatedExecutor executor(each, llama_3_8b(), {});
    const Seconds plain = executor.run(plan).duration;
    executor.swap_blocks(std::vector<BlockCopy>(3), std::vector<BlockCopy>(2));
    const Seconds swapped = executor.run(plan).duration;
    const double expected = each.kind == lower::DeviceKind::gpu
                                ? 5 * 2 * 32 * 3e-6 + bytes / 16e9
                                : 2 * bytes / (each.dram().bandwidth.value() * each.sustained.dram_bandwidth);
    CHECK((swapped - plain).value() == Approx(expected));
    CHECK(executor.swaps().value() == Approx(expected));
    CHECK(executor.run(plan).duration == plain);
    CHECK(executor.swaps() == Seconds());
  }
}

TEST_CASE("a device waits for kernels that are launched one by one, and for none of a graph") {
  Machine machine = a100_like();
  machine.stack.kernels_per_op = 2;
  const StepPlan decode = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 4, 100));
  const StepPrice replayed = price_step(machine, decode);
  double kernels = 0;
  for (const OpPrice& op : replayed.ops) kernels += op.count * op.kernels;
  CHECK(kernels >= 2.0 * (32 * 9 + 3));  // rope_and_cache is two
  machine.stack.host_per_kernel = Seconds(1e-3);
  CHECK(price_step(machine, decode).seconds.value() == Approx((replayed.host + kernels * Seconds(1e-3)).value()));
  machine.stack.graphs.decode_sequences = 4;
  CHECK(price_step(machine, decode).seconds == replayed.seconds);
  const StepPlan more = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 5, 100));
  CHECK(price_step(machine, more).seconds > Seconds(0.5));
  machine.stack.host_per_kernel = Seconds(1e-9);  // the device is slower
  const StepPlan prefill = plan_step(llama_3_8b(), {}, uniform_batch(Phase::prefill, 1, 100));
  const StepPrice hidden = price_step(machine, prefill);
  CHECK(hidden.host == replayed.host);
}

TEST_CASE("a host that copies block tables takes time for each block of the step, once for all layers") {
  Machine machine = a100_like();
  const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 4, 100));
  const StepPrice before = price_step(machine, plan);
  machine.stack.host_per_block = Seconds(60e-9);
  const StepPrice after = price_step(machine, plan);
  CHECK((after.host - before.host).value() == Approx(4 * 7 * 60e-9));
  CHECK((after.seconds - before.seconds).value() == Approx(4 * 7 * 60e-9));
}

TEST_CASE("finding the likeliest tokens takes time for each logit of a step, whoever asked") {
  Machine machine = a100_like();
  machine.stack.sampler_per_step = Seconds(1e-4);
  machine.stack.sampler_per_logit = Seconds(1e-10);
  Batch batch = uniform_batch(Phase::decode, 4, 100);
  const StepPrice before = price_step(machine, plan_step(llama_3_8b(), {}, batch));
  CHECK(before.sampling == Seconds());
  batch.filters_logits = true;
  const StepPrice after = price_step(machine, plan_step(llama_3_8b(), {}, batch));
  CHECK(after.sampling.value() == Approx(1e-4 + 4 * 128256 * 1e-10));
  CHECK(after.seconds.value() == Approx((before.seconds + after.sampling).value()));
  // Every device that shares the model filters all logits. (The link is for the exchanges, which sampling leaves out.)
  machine.peer_link = BytesPerSecond(600e9);
  CHECK(price_step(machine, plan_step(shard(llama_3_8b(), {}, 2), {}, batch)).sampling == after.sampling);
  for (SequenceSlice& slice : batch.sequences) slice.num_logits = 0;
  CHECK(price_step(machine, plan_step(llama_3_8b(), {}, batch)).sampling == Seconds());
}

TEST_CASE("a decode step of Llama-2-7B stays above the time to read its weights") {
  const StepPlan plan = plan_step(llama_2_7b(), {}, uniform_batch(Phase::decode, 1, 205));
  CHECK(price_step(a100_like(), plan).seconds >= Seconds(13.2e9 / 2039e9));
}

}  // namespace
}  // namespace dculab::sim::test

// What other programs' attention kernels take: vLLM's paged kernel, which has no matrix instructions, and Triton's,
// which waits.
#include <algorithm>

#include "lower/vllm/kernels.hpp"
#include "lower/vllm/paged_work.hpp"
#include "model/plan_step.hpp"
#include "sim/compute/peak.hpp"
#include "sim/cost/step_price.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

const Op& decode_of(const StepPlan& plan) { return *std::ranges::find(plan.ops, OpKind::attention_decode, &Op::kind); }

StepPlan llama_decode(int block_size, int kv_heads = 8) {
  EngineOptions options;
  options.block_size = block_size;
  return plan_step(with_kv_heads(llama_3_8b(), kv_heads), options, uniform_batch(Phase::decode, 32, 1536));
}

Machine with_vllm(Machine machine) {
  machine.stack.kernels =
      lower::Kernels{.matmul = {}, .attention_prefill = {}, .attention_decode = {&lower::vllm::kPagedAttention}};
  return machine;
}

Seconds seconds(const Machine& machine, const StepPlan& plan) {
  return price_op(machine, plan, decode_of(plan), step_footprint(plan)).seconds;
}

TEST_CASE("pairs of 16 bits go at the rate of the half-precision pipe, where it is wider too") {
  CHECK(packed_lanes(a100_like(), multiply_format(a100_like(), Dtype::f16)).value() == Approx(78e12 / 4));
  CHECK(packed_lanes(a100_like(), multiply_format(a100_like(), Dtype::f32)).value() == Approx(19.5e12 / 2));
}

TEST_CASE("its instructions take what the vector units take, whatever matrix cores there are") {
  Machine machine = with_vllm(a100_like());
  machine.stack.reached.attention_compute = 0.5;
  const StepPlan plan = llama_decode(8);
  const lower::VectorWork work =
      lower::vllm::paged_work_per_token(decode_of(plan).attention, 1, machine.waves.wave_size);
  const double tokens = 32.0 * 1536 * 32;  // walked by each query head
  Parallelism whole;
  whole.active_units = machine.compute_units;
  const double expected = tokens * (work.full / (19.5e12 / 2) + work.half / (78e12 / 4)) / 0.5;
  CHECK(compute_time(machine, decode_of(plan), whole, plan).busy.value() == Approx(expected));
}

TEST_CASE("small blocks cost a group of query heads more than they cost one head with its own KV") {
  const Machine machine = with_vllm(a100_like());
  const auto small_over_large = [&](int kv_heads) {
    return seconds(machine, llama_decode(8, kv_heads)) / seconds(machine, llama_decode(32, kv_heads));
  };
  CHECK(small_over_large(8) > 1.15);
  CHECK(small_over_large(32) < small_over_large(8));
  CHECK(small_over_large(32) > 1);
}

TEST_CASE("what one workgroup waits for and works on adds up, with neighbours it hides") {
  Machine machine = a100_like();
  machine.compute_capability.clear();
  machine.stack.kernels =
      lower::Kernels{.matmul = {}, .attention_prefill = {}, .attention_decode = {&lower::vllm::kTritonUnified2d}};
  const auto price_of = [&machine](int sequences) {
    const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, sequences, 4096));
    return price_op(machine, plan, decode_of(plan), step_footprint(plan));
  };
  const OpPrice alone = price_of(1), many = price_of(256);
  const auto busy = [](const OpPrice& price) { return price.seconds - price.launch - price.lookups; };
  CHECK(alone.parallel.concurrent == alone.parallel.active_units);
  CHECK(busy(alone) >= alone.compute + alone.latency + alone.memory);
  CHECK(many.parallel.concurrent > 2 * many.parallel.active_units);
  CHECK(busy(many) < many.compute + many.latency + many.memory);
}

}  // namespace
}  // namespace dculab::sim::test

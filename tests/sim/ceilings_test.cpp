// Steps up to the largest batch and the longest context that scenarios may ask for: 2^40 tokens.
#include <cmath>

#include "lower/dculab_gpu/geometry.hpp"
#include "lower/lower.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/stack_fields.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/tables/footprint.hpp"
#include "sim/tables/intensity.hpp"
#include "tests/sim/models.hpp"
#include "tests/sim/random_cases.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::sim::test {
namespace {

struct Size {
  int batch = 1;
  int context = 1;
};

struct PricedPlan {
  StepPlan plan;
  StepPrice price;
};

[[nodiscard]] PricedPlan priced_plan(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                                     Phase phase, Size size) {
  PricedPlan result{plan_step(model, options, uniform_batch(phase, size.batch, size.context)), {}};
  price_step(machine, result.plan, result.price);
  return result;
}

void check_finite(const PricedPlan& step, const Machine& machine) {
  for (std::size_t index = 0; index < step.plan.ops.size(); ++index) {
    const Op& op = step.plan.ops[index];
    const OpPrice& price = step.price.ops[index];
    CAPTURE(op.name, op.m, op.flops.value(), price.seconds.value());
    CHECK(op.m > 0);
    CHECK((std::isfinite(op.flops.value()) && op.flops >= FlopCount()));
    CHECK((std::isfinite(price.seconds.value()) && price.seconds > Seconds()));
    const lower::Launch launch = lower::lower(op, step.plan, machine);
    for (const lower::Access& access : launch.accesses()) CHECK((access.unique >= Bytes() && access.requests >= 1));
    for (std::size_t level = 0; level < machine.memory.size(); ++level) {
      CHECK((std::isfinite(price.bytes[level].value()) && price.bytes[level] >= Bytes()));
      CHECK((price.hit_rate[level] >= 0 && price.hit_rate[level] <= 1));
    }
  }
}

// The same step with a larger batch or context. An op that leaves compute units idle may be faster with more rows,
// which draw the same weights through more units, and so may a product whose rows become enough for a GEMM in the place
// of a GEMV; one that keeps all units busy with the same kernel never is.
void check_grows(const PricedPlan& small, const PricedPlan& large, const Machine& machine) {
  CHECK(total_flops(large.plan) > total_flops(small.plan));
  for (std::size_t index = 0; index < small.plan.ops.size(); ++index) {
    const OpPrice& before = small.price.ops[index];
    CAPTURE(small.plan.ops[index].name);
    CHECK(large.plan.ops[index].flops >= small.plan.ops[index].flops);
    const bool other_kernel = small.plan.ops[index].m <= lower::dculab_gpu::kGemvMaxRows &&
                              large.plan.ops[index].m > lower::dculab_gpu::kGemvMaxRows;
    if (before.parallel.active_units >= 0.999 * machine.compute_units && !other_kernel)
      CHECK(large.price.ops[index].seconds >= before.seconds);
  }
}

[[nodiscard]] int power_of_two(RandomCases& random, int highest) { return 1 << random.integer(0, highest); }

TEST_CASE("a larger batch and a longer context take more FLOP and no less time, up to the largest") {
  const int cases = kSanitized ? 40 : 200;
  RandomCases random(11);
  for (int index = 0; index < cases; ++index) {
    const Machine machine = random.machine();
    const ModelShape model = random.model();
    const EngineOptions options = random.options();
    const Phase phase = random.integer(0, 1) == 0 ? Phase::prefill : Phase::decode;
    const Size size{power_of_two(random, 15), power_of_two(random, 19)};
    CAPTURE(index, size.batch, size.context, phase == Phase::prefill);
    const auto at = [&](Size each) { return priced_plan(machine, model, options, phase, each); };
    const PricedPlan step = at(size), wider = at({2 * size.batch, size.context}),
                     longer = at({size.batch, 2 * size.context});
    for (const PricedPlan& each : {step, wider, longer}) check_finite(each, machine);
    check_grows(step, wider, machine);
    check_grows(step, longer, machine);
    if (size.batch > 1024) continue;
    const PricedPlan much_wider = at({64 * size.batch, size.context});
    check_grows(step, much_wider, machine);
    CHECK(much_wider.price.seconds >= step.price.seconds);
  }
}

// Every figure at one end of what a machine file may state (sim/hardware/machine_fields.hpp).
[[nodiscard]] Machine extreme_machine(RandomCases& random) {
  const auto either = [&random](double low, double high) { return random.integer(0, 1) == 0 ? low : high; };
  const auto count = [&either](int high) { return static_cast<int>(either(1, high)); };
  Machine machine = random.machine();
  machine.compute_units = count(1 << 20);
  for (auto& [dtype, peak] : machine.peaks) {
    peak.vector = FlopsPerSecond(either(1e3, 1e21));
    if (peak.matrix) peak.matrix = FlopsPerSecond(either(1e3, 1e21));
  }
  Seconds latency(either(1e-12, 1e3));
  for (MemoryLevel& level : machine.memory) {
    level.size = Bytes(either(1, 0x1p50));
    level.line = Bytes(either(1, 0x1p50));
    level.bandwidth = BytesPerSecond(either(1e3, 1e20));
    level.bandwidth_per_unit = BytesPerSecond(either(0, either(1e3, 1e20)));
    level.outstanding = either(0, 1 << 20);
    level.latency = latency = std::max(latency, Seconds(either(1e-12, 1e3)));
    level.retention_time = Seconds(either(0, either(1e-12, 1e3)));
  }
  machine.waves = {.wave_size = count(1 << 20),
                   .simds_per_unit = count(1024),
                   .max_waves_per_simd = count(1024),
                   .vgprs_per_lane = count(1 << 20),
                   .vgpr_granule = count(1 << 20),
                   .max_workgroups_per_unit = count(1 << 20),
                   .lds_per_unit = Bytes(either(1, 0x1p50)),
                   .lds_granule = Bytes(either(1, 0x1p50))};
  machine.overheads = {Seconds(either(0, 1e3)), Seconds(either(0, 1e3)), Seconds(either(0, 1e3)),
                       Seconds(either(0, 1e3)), Seconds(either(0, 1e3))};
  for (const FigureField<Reached>& field : kReached)
    if (const auto* share = std::get_if<double Reached::*>(&field.member))
      machine.stack.reached.** share = either(1e-4, 1);
  for (double Sustained::*share :
       {&Sustained::dram_bandwidth, &Sustained::cache_bandwidth, &Sustained::cold_miss_bandwidth})
    machine.sustained.*share = either(1e-4, 1);
  machine.stack.reached.block_lookup = Seconds(either(0, 1e3));
  return machine;
}

TEST_CASE(
    "figures at their bounds give finite prices, intervals and capacities, for the smallest step and the largest") {
  const int cases = kSanitized ? 100 : 400;
  RandomCases random(12);
  for (int index = 0; index < cases; ++index) {
    const Machine machine = extreme_machine(random);
    REQUIRE(problems(machine).empty());
    const ModelShape model = random.model();
    const EngineOptions options = random.options();
    const Phase phase = random.integer(0, 1) == 0 ? Phase::prefill : Phase::decode;
    const Size size = random.integer(0, 1) == 0 ? Size{} : Size{1 << 16, phase == Phase::prefill ? 1 << 16 : 1 << 24};
    CAPTURE(index, size.batch, size.context, phase == Phase::prefill, machine.kind == lower::DeviceKind::gpu);
    const PricedPlan step = priced_plan(machine, model, options, phase, size);
    check_finite(step, machine);
    const Confidence trust = confidence(machine, model, options, step.plan, step.price.seconds);
    CHECK((trust.low > Seconds() && trust.low <= step.price.seconds && trust.high >= step.price.seconds));
    CHECK(std::isfinite(trust.high.value()));
    const Capacity room = capacity(machine, model, options, size.context);
    CHECK((room.num_blocks >= 0 && room.max_sequences >= 0 && room.max_sequences <= room.num_blocks));
    for (const Op& op : step.plan.ops) static_cast<void>(lower::lower(op, step.plan, machine));
  }
}

TEST_CASE("the largest prefill of the longest contexts is predicted, and the tables have it") {
  const PricedPlan step = priced_plan(a100_like(), llama_3_8b(), {}, Phase::prefill, {1 << 16, 1 << 24});
  check_finite(step, a100_like());
  CHECK(step.plan.batch.num_tokens() == std::int64_t{1} << 40);
  const IntensityTable table = intensity_table(llama_3_8b(), 0, Phase::prefill, 1 << 24, 1 << 16, Dtype::f16);
  CHECK((std::isfinite(table.total.flops.value()) && table.total.flops > FlopCount()));
  const Footprint kept = footprint(llama_3_8b(), {.tokens = 1 << 24, .batch = 1 << 16});
  CHECK(kept.kv_bytes == 0x1p40 * kept.kv_bytes_per_token);
}

}  // namespace
}  // namespace dculab::sim::test

// What must hold for the price of any step on any machine.
#include <algorithm>
#include <array>
#include <cmath>

#include "lower/gemm/kernels.hpp"
#include "lower/lower.hpp"
#include "model/plan_step.hpp"
#include "sim/cost/smooth_max.hpp"
#include "sim/cost/step_price.hpp"
#include "tests/sim/random_cases.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

struct LawCase {
  Machine machine;
  ModelShape model;
  EngineOptions options;
  StepPlan plan;
  StepPrice price;
};

template <typename Check>
void for_random_cases(unsigned seed, Check&& check) {
  RandomCases random(seed);
  for (int index = 0; index < kCases; ++index) {
    CAPTURE(index);
    LawCase each{random.machine(), random.model(), random.options(), {}, {}};
    if (random.integer(0, 1) == 0) each.machine.stack.kernels.matmul = {&lower::gemm::kCublas};
    REQUIRE(problems(each.machine).empty());
    each.plan = plan_step(each.model, each.options, random.batch());
    each.price = price_step(each.machine, each.plan);
    check(each, random);
  }
}

void check_no_op_slower(const LawCase& before, const Machine& better) {
  const StepPrice after = price_step(better, before.plan);
  for (std::size_t op = 0; op < before.plan.ops.size(); ++op) {
    CAPTURE(before.plan.ops[op].name);
    CHECK(after.ops[op].seconds <= before.price.ops[op].seconds * (1 + kRounding));
  }
  CHECK(after.seconds <= before.price.seconds * (1 + kRounding));
}

TEST_CASE("more bandwidth of any level is never slower") {
  for_random_cases(1, [](const LawCase& each, RandomCases& random) {
    Machine better = each.machine;
    MemoryLevel& level =
        better.memory[static_cast<std::size_t>(random.integer(0, static_cast<int>(better.memory.size()) - 1))];
    const double factor = random.real(1, 10);
    level.bandwidth *= factor;
    level.bandwidth_per_unit *= factor;
    check_no_op_slower(each, better);
  });
}

TEST_CASE("a larger cache is never slower") {
  for_random_cases(2, [](const LawCase& each, RandomCases& random) {
    Machine better = each.machine;
    better.memory[static_cast<std::size_t>(random.integer(0, static_cast<int>(better.memory.size()) - 2))].size *=
        random.real(1, 50);
    check_no_op_slower(each, better);
  });
}

TEST_CASE("a lower latency is never slower") {
  for_random_cases(3, [](const LawCase& each, RandomCases& random) {
    Machine better = each.machine;
    const double factor = random.real(0.1, 1);
    for (MemoryLevel& level : better.memory) level.latency *= factor;
    check_no_op_slower(each, better);
  });
}

TEST_CASE("more arithmetic is never slower") {
  for_random_cases(4, [](const LawCase& each, RandomCases& random) {
    Machine better = each.machine;
    const double factor = random.real(1, 20);
    for (auto& [dtype, peak] : better.peaks) {
      peak.vector *= factor;
      if (peak.matrix) *peak.matrix *= factor;
    }
    check_no_op_slower(each, better);
  });
}

TEST_CASE("better shares of peaks and smaller overheads are never slower") {
  for_random_cases(5, [](const LawCase& each, RandomCases& random) {
    Machine better = each.machine;
    Reached& reached = better.stack.reached;
    Sustained& sustained = better.sustained;
    for (double* share : {&reached.matmul_compute, &reached.attention_compute, &reached.elementwise_compute,
                          &reached.conversion_compute, &sustained.dram_bandwidth, &sustained.cache_bandwidth,
                          &reached.matmul_overlap, &reached.overlap})
      *share = random.real(*share, 1);
    reached.block_lookup *= random.real(0, 1);
    better.overheads.kernel_launch *= random.real(0, 1);
    better.overheads.workgroup_start *= random.real(0, 1);
    check_no_op_slower(each, better);
  });
}

TEST_CASE("products hide resources behind each other by one share, all other kernels by another") {
  int slower = 0;
  for_random_cases(12, [&slower](const LawCase& each, RandomCases& random) {
    const bool products = random.integer(0, 1) == 0;
    Machine worse = each.machine;
    worse.stack.reached.*(products ? &Reached::matmul_overlap : &Reached::overlap) = 0.05;
    const StepPrice after = price_step(worse, each.plan);
    for (std::size_t op = 0; op < after.ops.size(); ++op) {
      const bool differs = after.ops[op].seconds != each.price.ops[op].seconds;
      slower += differs ? 1 : 0;
      if (differs) CHECK((each.plan.ops[op].kind == OpKind::matmul) == products);
    }
  });
  CHECK(slower > kCases);
}

TEST_CASE("no price is below its floor") {
  for_random_cases(6, [](const LawCase& each, RandomCases&) {
    for (std::size_t index = 0; index < each.plan.ops.size(); ++index) {
      const Op& op = each.plan.ops[index];
      const OpPrice& price = each.price.ops[index];
      CAPTURE(op.name);
      CHECK(price.seconds >= price.floor);
      CHECK(std::isfinite(price.seconds.value()));
      FlopsPerSecond highest;
      for (const auto& [dtype, peak] : each.machine.peaks)
        highest = std::max({highest, peak.vector, peak.matrix.value_or(peak.vector)});
      CHECK(price.seconds >= op.flops / highest);
      for (std::size_t level = 0; level < each.machine.memory.size(); ++level)
        CHECK(price.seconds >= price.bytes[level] / each.machine.memory[level].bandwidth);
    }
  });
}

TEST_CASE("what does not fit in the caches is read from DRAM") {
  for_random_cases(7, [](const LawCase& each, RandomCases&) {
    Bytes caches;
    for (std::size_t level = 0; level + 1 < each.machine.memory.size(); ++level) {
      const MemoryLevel& cache = each.machine.memory[level];
      caches += cache.size * (cache.scope == Scope::compute_unit ? each.machine.compute_units : 1);
    }
    if (step_footprint(each.plan) < caches * 10) return;
    for (std::size_t index = 0; index < each.plan.ops.size(); ++index) {
      Bytes cold;
      for (const Operand& operand : each.plan.ops[index].operands())
        if (operand.role == OperandRole::weight || operand.role == OperandRole::kv_read) cold += operand.unique;
      const OpPrice& price = each.price.ops[index];
      CHECK(price.bytes[each.machine.memory.size() - 1] >= cold * 0.999);
      CHECK(price.seconds >= cold * 0.999 / each.machine.dram().bandwidth);
    }
  });
}

// In which pieces bytes arrive at a level: level_bytes.hpp.
double piece(const Machine& machine, std::size_t level) {
  const double own = machine.memory[level].line.value();
  if (level == 0) return own;
  const double above = machine.memory[level - 1].line.value();
  return level + 1 == machine.memory.size() ? std::max(own, above) : above;
}

// How many times more bytes than it is asked for a level may ask of the next: more than once only in longer pieces.
double overfetch(const Machine& machine, std::size_t level) {
  return std::max(1.0, piece(machine, level) / piece(machine, level - 1));
}

// How often a level may be asked for the bytes of one request for a piece of a line: for the whole line each time.
double refetch(const Machine& machine, const lower::Launch& launch, std::size_t level) {
  double most = 1;
  for (const lower::Stream& stream : launch.streams.all())
    most = std::max(most, stream.run > Bytes{} ? 1 + Bytes(piece(machine, level)) / stream.run : stream.visits);
  return most;
}

TEST_CASE("bytes shrink level by level but where pieces get longer or come one by one, and hit rates are shares") {
  for_random_cases(8, [](const LawCase& each, RandomCases&) {
    for (std::size_t op = 0; op < each.price.ops.size(); ++op) {
      const OpPrice& price = each.price.ops[op];
      const lower::Launch launch = lower::lower(each.plan.ops[op], each.plan, each.machine, each.machine.stack.kernels);
      for (std::size_t level = 0; level < each.machine.memory.size(); ++level) {
        CHECK(price.hit_rate[level] >= 0);
        CHECK(price.hit_rate[level] <= 1);
        if (level > 0)
          CHECK(price.bytes[level] <= price.bytes[level - 1] * overfetch(each.machine, level) *
                                          refetch(each.machine, launch, level) * (1 + kRounding));
        CHECK(price.bandwidth[level] <= each.machine.memory[level].bandwidth);
      }
      CHECK(price.effective_latency >= each.machine.memory.front().latency * (1 - kRounding));
      CHECK(price.effective_latency <= each.machine.dram().latency * (1 + kRounding));
    }
  });
}

// Without DRAM's, which an op with `in_turn` takes beside it.
Seconds slowest_of_caches(const OpPrice& price, const Machine& machine) {
  Seconds slowest;
  for (std::size_t level = 0; level + 1 < machine.memory.size(); ++level)
    slowest = std::max(slowest, price.bytes[level] / price.bandwidth[level]);
  return slowest;
}

TEST_CASE("with infinite arithmetic only launch, look-ups, memory and sums are left") {
  for_random_cases(9, [](const LawCase& each, RandomCases&) {
    Machine machine = each.machine;
    machine.stack.reached.matmul_overlap = machine.stack.reached.overlap = 1;
    for (auto& [dtype, peak] : machine.peaks) peak = {FlopsPerSecond(1e40), {}};
    const StepPrice step = price_step(machine, each.plan);
    for (std::size_t index = 0; index < step.ops.size(); ++index) {
      const OpPrice& price = step.ops[index];
      const Seconds memory = price.in_turn > Seconds{} ? slowest_of_caches(price, machine) : price.memory;
      const Seconds left = std::max(memory, price.latency), hidden = std::min(memory, price.latency);
      const Seconds sum = price.launch + price.lookups + price.chain + price.split_k_reduction + price.in_turn + left;
      // Of few waves each waits for its own loads, one after the other.
      if (lower::lower(each.plan.ops[index], each.plan, machine).overlap == lower::Overlap::waves) {
        CHECK(price.seconds >= sum * (1 - kRounding));
        CHECK(price.seconds <= (sum + hidden) * (1 + kRounding));
      } else {
        CHECK(price.seconds.value() == Approx(sum.value()).epsilon(kRounding));
      }
      CHECK(price.bound.kind != BoundKind::compute);
    }
  });
}

TEST_CASE("the bound is the largest term, and the time at least that") {
  for_random_cases(10, [](const LawCase& each, RandomCases&) {
    for (const OpPrice& price : each.price.ops) {
      const Seconds largest = std::max({price.compute, price.memory, price.split_k_reduction, price.latency,
                                        price.lookups, price.chain, price.launch});
      CHECK(price.seconds >= largest);
      const bool latency = price.bound.kind == BoundKind::latency, draws_little = latency && price.bound.level > 0;
      if (draws_little) CHECK(price.parallel.concurrent < each.machine.compute_units);
      const Seconds named = price.bound.kind == BoundKind::compute  ? price.compute
                            : price.bound.kind == BoundKind::memory ? std::max(price.memory, price.split_k_reduction)
                            : draws_little                          ? price.memory
                            : latency ? std::max({price.latency, price.lookups, price.chain})
                                      : price.launch;
      CHECK(named == largest);
    }
  });
}

TEST_CASE("a larger KV block never adds look-ups, and on a CPU never adds time") {
  for_random_cases(11, [](const LawCase& each, RandomCases&) {
    if (each.options.block_size == 256) return;
    EngineOptions larger = each.options;
    larger.block_size *= 2;
    const StepPlan plan = plan_step(each.model, larger, each.plan.batch);
    const StepPrice price = price_step(each.machine, plan);
    for (std::size_t op = 0; op < plan.ops.size(); ++op) {
      CHECK(price.ops[op].lookups <= each.price.ops[op].lookups * (1 + kRounding));
      if (each.machine.kind == lower::DeviceKind::cpu)
        CHECK(price.ops[op].seconds <= each.price.ops[op].seconds * (1 + kRounding));
    }
  });
}

TEST_CASE("fewer KV heads never add KV bytes, all else alike") {
  for_random_cases(12, [](const LawCase& each, RandomCases&) {
    if (each.model.kinds[0].gqa().heads.num_key_value_heads == 1) return;
    const ModelShape fewer = with_kv_heads(each.model, each.model.kinds[0].gqa().heads.num_key_value_heads / 2);
    const StepPlan plan = plan_step(fewer, each.options, each.plan.batch);
    const StepPrice price = price_step(each.machine, plan);
    for (std::size_t op = 0; op < plan.ops.size(); ++op)
      if (plan.ops[op].kind == OpKind::attention_decode && each.options.attention_split.query_heads_per_workgroup == 0)
        CHECK(price.ops[op].bytes[0] < each.price.ops[op].bytes[0]);
    CHECK(step_footprint(plan) < step_footprint(each.plan));
  });
}

TEST_CASE("the smooth maximum: never below the largest, and what it says at the ridge") {
  for (const double overlap : {0.1, 0.5, 0.8, 1.0}) {
    const double norm = norm_of_overlap(overlap);
    const std::array equal{Seconds(3), Seconds(3)};
    CHECK(smooth_max(std::span(equal), norm).value() == Approx(3 * (2 - overlap)));
    const std::array apart{Seconds(3), Seconds(1e-3), Seconds{}};
    CHECK(smooth_max(std::span(apart), norm) >= Seconds(3));
    CHECK(smooth_max(std::span(apart), norm) <= Seconds(3.001 + kRounding));
  }
}

}  // namespace
}  // namespace dculab::sim::test

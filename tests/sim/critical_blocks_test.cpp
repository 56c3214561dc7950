// What decodes cost that load only critical blocks: bounds of all blocks, and K and V of those that are chosen.
#include <algorithm>

#include "core/kv/retention.hpp"
#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/memory/capacity.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

constexpr int kBatch = 4, kLongContext = 8192;

EngineOptions options_of(int block_size, double budget) {
  EngineOptions options;
  options.block_size = block_size;
  options.kv_retention = {.policy = RetentionPolicy::critical_blocks, .kv_budget = budget};
  return options;
}

// Of one layer.
struct PricedBlocks {
  Op choice, attention;
  OpPrice choosing, attending;
};

PricedBlocks priced_blocks(const Machine& machine, const EngineOptions& options) {
  const StepPlan plan = plan_step(llama_3_8b(), options, uniform_batch(Phase::decode, kBatch, kLongContext));
  const StepPrice price = price_step(machine, plan);
  PricedBlocks found;
  for (std::size_t index = 0; index < plan.ops.size(); ++index) {
    if (plan.ops[index].kind == OpKind::choose_critical_blocks)
      found.choice = plan.ops[index], found.choosing = price.ops[index];
    if (plan.ops[index].kind == OpKind::attention_decode)
      found.attention = plan.ops[index], found.attending = price.ops[index];
  }
  return found;
}

}  // namespace

TEST_CASE("finer critical blocks have more bounds, which are all read, and cost more to choose from") {
  const Machine machine = mi50_like();
  const std::size_t dram = machine.memory.size() - 1;
  Seconds before{1e9};
  Bytes block_before;
  for (const int block_size : {4, 8, 16, 32, 64, 128}) {
    INFO("blocks of " << block_size);
    const EngineOptions options = options_of(block_size, 0.25);
    const PricedBlocks price = priced_blocks(machine, options);
    const double bounds = kBatch * 8.0 * kLongContext / block_size * 2 * 128 * 2;
    CHECK(price.choosing.bytes[dram].value() >= bounds);
    CHECK(price.choosing.bytes[dram].value() <= 1.05 * bounds);
    CHECK(price.choosing.seconds < before);
    CHECK(price.choosing.lookups > Seconds{});
    before = price.choosing.seconds;
    const double loaded = kBatch * 8.0 * kLongContext / 4 * 2 * 128 * 2;
    CHECK(price.attending.bytes[dram].value() >= loaded);
    CHECK(price.attending.bytes[dram].value() <= 1.05 * loaded);
    // A block has the bounds of as many bytes as one more token.
    const Capacity room = capacity(machine, llama_3_8b(), options, kLongContext);
    CHECK(room.block_bytes.value() == (block_size + 1) * 32 * 2 * 8 * 128 * 2.0);
    CHECK(room.block_bytes > block_before);
    block_before = room.block_bytes;
  }
}

TEST_CASE("a smaller budget loads less, and the bounds stay") {
  const Machine machine = mi50_like();
  const PricedBlocks quarter = priced_blocks(machine, options_of(16, 0.25)),
                     half = priced_blocks(machine, options_of(16, 0.5));
  CHECK(quarter.attending.seconds < half.attending.seconds);
  CHECK(quarter.choosing.bytes[0].value() > 0.95 * half.choosing.bytes[0].value());
  EngineOptions whole;
  const StepPlan plan = plan_step(llama_3_8b(), whole, uniform_batch(Phase::decode, kBatch, kLongContext));
  CHECK(price_step(machine, plan).seconds >
        price_step(machine, plan_step(llama_3_8b(), options_of(16, 0.25), plan.batch)).seconds);
}

TEST_CASE("few chosen tokens take as long as those of a workgroup on each unit, and a few more hardly longer") {
  const Machine machine = mi50_like();  // 60 units
  const std::size_t dram = machine.memory.size() - 1;
  const auto attending = [&machine](int partitions) {  // of 512 tokens, for each of 8 KV heads
    const double budget = partitions / 32.0;
    const StepPlan plan = plan_step(llama_3_8b(), options_of(16, budget), uniform_batch(Phase::decode, 1, 32 * 512));
    const OpPrice price = price_step(machine, plan)
                              .ops[static_cast<std::size_t>(
                                  std::ranges::find(plan.ops, OpKind::attention_decode, &Op::kind) - plan.ops.begin())];
    REQUIRE(price.parallel.workgroups == 8 * partitions);
    return price;
  };
  const OpPrice three = attending(3), seven = attending(7), eight = attending(8);
  CHECK(seven.bytes[dram] > 2 * three.bytes[dram]);
  CHECK(seven.seconds < 1.02 * three.seconds);
  CHECK(name(seven.bound, machine) == "latency");
  REQUIRE(eight.parallel.workgroups_per_unit >= 2);
  CHECK(eight.seconds < 1.2 * seven.seconds);
  CHECK(name(eight.bound, machine) == "DRAM");
}

}  // namespace dculab::sim::test

// The bytes that reach each level when an op runs alone: whole lines, never less than its distinct bytes.
#include "sim/memory/level_bytes.hpp"

#include "model/plan_step.hpp"
#include "sim/memory/traffic.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// Bytes of the lines that runs touch, over their own: runs of `run` bytes that start at any multiple of it.
double counted_rounding(int run, int line) {
  std::int64_t lines = 0;
  for (std::int64_t place = 0; place < line; ++place) {
    const std::int64_t begin = place * run;
    lines += (begin + run - 1) / line - begin / line + 1;
  }
  return static_cast<double>(lines) / run;  // of `line` runs: lines * line / (line * run)
}

lower::Access scattered_runs(int run) {
  return {.unique = Bytes(1 << 20), .contiguous_run = Bytes(run), .is_scattered = true};
}

Machine with_lines(Machine machine, Bytes line) {
  for (MemoryLevel& level : machine.memory) level.line = line;
  return machine;
}

// Attention and matmuls of small and large steps, alone and grouped.
template <typename Check>
void for_steps(Check check) {
  for (const int num_kv_heads : {1, 8, 32})
    for (const int head_dim : {16, 80, 128})
      for (const int block_size : {1, 16, 256})
        for (const Phase phase : {Phase::decode, Phase::prefill}) {
          ModelShape model = llama_2_7b();
          model.kinds[0].gqa().heads.num_key_value_heads = num_kv_heads;
          model.kinds[0].gqa().heads.head_dim = head_dim;
          EngineOptions options;
          options.block_size = block_size;
          options.kv_cache_dtype = Dtype::fp8_e4m3;
          options.attention_split.query_heads_per_workgroup = block_size == 16 ? 1 : 0;
          const StepPlan plan = plan_step(model, options, uniform_batch(phase, 3, 700));
          for (const Op& op : plan.ops) {
            INFO(op.name << ", " << num_kv_heads << " KV heads of " << head_dim << ", blocks of " << block_size);
            check(op, plan);
          }
        }
}

PerLevel<Bytes> alone(const Machine& machine, const Op& op, const StepPlan& plan) {
  const lower::Launch launch = lowered(machine, op, plan);
  return level_bytes(machine, op, launch, sim::parallelism(machine, launch), launch.unique_bytes(), CacheStart::cold)
      .arriving;
}

}  // namespace

TEST_CASE("line rounding is what counting lines gives", "[level_bytes]") {
  for (const int line : {32, 64, 128})
    for (const int run : {2, 16, 20, 32, 48, 64, 80, 96, 100, 160, 256, 2560}) {
      INFO("runs of " << run << ", lines of " << line);
      CHECK(line_rounding(scattered_runs(run), Bytes(line)) == Approx(counted_rounding(run, line)));
    }
}

TEST_CASE("line rounding is for scattered operands, and for runs that exist", "[level_bytes]") {
  lower::Access access = scattered_runs(16);
  CHECK(line_rounding(access, Bytes(64)) == 4);
  access.is_scattered = false;
  CHECK(line_rounding(access, Bytes(64)) == 1);
  // A run is no longer than the operand.
  lower::Access tiny = scattered_runs(4096);
  tiny.unique = Bytes(16);
  CHECK(line_rounding(tiny, Bytes(64)) == 4);
}

TEST_CASE("cold: no level is asked for less than the distinct bytes, and by operands none for more than the one above",
          "[level_bytes]") {
  for (const Machine& machine : {mi50_like(), with_lines(a100_like(), Bytes(32)), cpu_like()})
    for_steps([&](const Op& op, const StepPlan& plan) {
      const PerLevel<Bytes> bytes = alone(machine, op, plan);
      const bool by_operands = lowered(machine, op, plan).streams.count == 0;
      for (std::size_t level = 0; level < machine.memory.size(); ++level) {
        INFO(machine.name << " " << machine.memory[level].name);
        CHECK(bytes[level].value() >= op.unique_bytes().value() * (1 - 1e-12));
        if (level > 0 && by_operands) CHECK(bytes[level].value() <= bytes[level - 1].value() * (1 + 1e-12));
      }
    });
}

TEST_CASE("longer lines never move fewer bytes", "[level_bytes]") {
  for_steps([](const Op& op, const StepPlan& plan) {
    PerLevel<Bytes> before{};
    for (const double line : {16.0, 32.0, 64.0, 128.0, 256.0}) {
      INFO("lines of " << line);
      const Machine machine = with_lines(mi50_like(), Bytes(line));
      const PerLevel<Bytes> bytes = alone(machine, op, plan);
      for (std::size_t level = 0; level < machine.memory.size(); ++level)
        CHECK(bytes[level].value() >= before[level].value() * (1 - 1e-12));
      before = bytes;
    }
  });
}

TEST_CASE("what earlier ops left in the caches never adds bytes", "[level_bytes]") {
  for (const Machine& machine : {mi50_like(), cpu_like()})
    for_steps([&](const Op& op, const StepPlan& plan) {
      const lower::Launch launch = lowered(machine, op, plan);
      const Parallelism parallel = sim::parallelism(machine, launch);
      const Bytes footprint = launch.unique_bytes();
      const LevelBytes cold = level_bytes(machine, op, launch, parallel, footprint, CacheStart::cold);
      const LevelBytes warm = level_bytes(machine, op, launch, parallel, footprint, CacheStart::in_step);
      CHECK(warm.read == cold.read);
      for (std::size_t level = 0; level < machine.memory.size(); ++level)
        CHECK(warm.arriving[level].value() <= cold.arriving[level].value() * (1 + 1e-12));
    });
}

TEST_CASE("half-filled lines are read once where the cache above keeps them from one run to the next",
          "[level_bytes]") {
  Machine machine = mi50_like();
  ModelShape model = llama_2_7b();
  model.kinds[0].gqa().heads.num_attention_heads = model.kinds[0].gqa().heads.num_key_value_heads = 1;
  model.kinds[0].gqa().heads.head_dim = 32;
  EngineOptions options;
  options.block_size = 1;
  options.kv_cache_dtype = Dtype::fp8_e4m3;  // runs of 32 bytes in lines of 64
  options.attention_split.partition_tokens = 0;
  const auto kv_rounding = [&](int context) {
    const StepPlan plan = plan_step(model, options, uniform_batch(Phase::decode, 1, context));
    Op op = plan.ops[4];
    REQUIRE(op.kind == OpKind::attention_decode);
    op.num_operands = 1;  // KV alone
    const PerLevel<Bytes> bytes = alone(machine, op, plan);
    CHECK(bytes[1] == 2 * op.unique_bytes());
    return bytes[2] / op.unique_bytes();
  };
  model.max_position_embeddings = 1 << 24;
  CHECK(kv_rounding(1000) == Approx(1).margin(1e-3));     // 64 KB in 4 MiB of L2
  CHECK(kv_rounding(1 << 20) == Approx(2).margin(0.01));  // 64 MiB
}

}  // namespace dculab::sim::test

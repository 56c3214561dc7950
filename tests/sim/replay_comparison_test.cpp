// Replay and closed form of one op side by side, on traces written by hand.
#include "sim/memory/replay_comparison.hpp"

#include "lower/dculab_gpu/compiled_kernels.hpp"
#include "model/plan_step.hpp"
#include "tests/sim/address_traces.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

constexpr int kSequences = 4, kReplayedHeads = 8, kReplayedContext = 256;

// Decode of 4 sequences, 8 query heads that share one KV head of 64 values, each served by a workgroup of its own: the
// op that attention_like(4, 8, ...) would be the trace of.
StepPlan shared_kv_plan() {
  ModelShape model = llama_2_7b();
  model.kinds[0].gqa().heads = {kReplayedHeads, 1, 64};
  EngineOptions options;
  options.attention_split.query_heads_per_workgroup = 1;
  options.attention_split.partition_tokens = 0;
  StepPlan plan = plan_step(model, options, uniform_batch(Phase::decode, kSequences, kReplayedContext));
  std::erase_if(plan.ops, [](const Op& op) { return op.kind != OpKind::attention_decode; });
  REQUIRE(plan.ops.size() == 1);
  return plan;
}

constexpr std::uint64_t kKvBytes = 2ULL * kReplayedContext * 64 * 2;  // of a sequence

AddressTrace shared_kv_trace() { return attention_like(kSequences, kReplayedHeads, kKvBytes, 1024); }

}  // namespace

TEST_CASE("both sides of a comparison agree where KV is shared and fits", "[replay_comparison]") {
  const Machine machine = mi50_like();
  const StepPlan plan = shared_kv_plan();
  const AddressTrace trace = shared_kv_trace();
  const ReplayComparison comparison = compare_with_replay(machine, plan, {&trace, 1}, ReuseMeasurement::off);
  CHECK(comparison.op == "attention_decode");
  CHECK(comparison.resources == "assumed");
  CHECK(comparison.workgroups == kSequences * kReplayedHeads);
  CHECK(comparison.accesses == trace.accesses.size());
  CHECK(comparison.coalescing == 1);
  CHECK(comparison.lines_per_load == 16);  // 1024 bytes
  CHECK_FALSE(comparison.reuse.has_value());
  REQUIRE(comparison.levels.size() == 3);

  // Replayed: every workgroup asks for the KV of its sequence, DRAM gives it once. 32 rows of 256 bytes are written.
  const double kv = kSequences * static_cast<double>(kKvBytes), rows = kSequences * kReplayedHeads * 256.0;
  const ComparedLevel& l2 = comparison.levels[1];
  const ComparedLevel& dram = comparison.levels[2];
  CHECK(comparison.levels[0].replayed.value() == kv * kReplayedHeads + rows);
  CHECK(dram.replayed.value() == kv + rows);
  CHECK(dram.replayed_hit_rate == 1);
  CHECK(l2.replayed_hit_rate == Approx(1 - dram.replayed / l2.replayed));
  CHECK(l2.closed_hit_rate == Approx(1 - dram.closed_form / l2.closed_form));
  // Closed form: the same, with the op's own query, output and block table.
  CHECK(comparison.levels[0].name == "L1");
  CHECK(dram.closed_form / dram.replayed == Approx(1).margin(0.05));
  CHECK(l2.closed_hit_rate == Approx(l2.replayed_hit_rate).margin(0.05));
}

TEST_CASE("launches of one op add up, and the first says how it was launched", "[replay_comparison]") {
  const Machine machine = mi50_like();
  const StepPlan plan = shared_kv_plan();
  const std::vector<AddressTrace> launches{shared_kv_trace(), attention_like(1, 2, 4096, 64)};
  const ReplayComparison both = compare_with_replay(machine, plan, launches, ReuseMeasurement::on);
  const ReplayComparison first = compare_with_replay(machine, plan, {&launches[0], 1}, ReuseMeasurement::on);
  const ReplayComparison second = compare_with_replay(machine, plan, {&launches[1], 1}, ReuseMeasurement::on);
  for (std::size_t level = 0; level < 3; ++level) {
    CHECK(both.levels[level].replayed == first.levels[level].replayed + second.levels[level].replayed);
    CHECK(both.levels[level].closed_form == first.levels[level].closed_form);
  }
  CHECK(both.accesses == first.accesses + second.accesses);
  CHECK(both.workgroups == first.workgroups);
  CHECK(both.lines_per_load == first.lines_per_load);
  REQUIRE(both.reuse.has_value());
  CHECK(both.reuse->touches == first.reuse->touches);
}

TEST_CASE("a compiled kernel decides how many workgroups share a unit", "[replay_comparison]") {
  Machine machine = mi50_like();
  machine.kernel_target = "gfx906";
  const StepPlan plan = shared_kv_plan();
  AddressTrace trace = shared_kv_trace();
  trace.kernel = "paged_attention_kernel<PagedAttentionTile<64, Half, 16, 4, (LaneTeam)0>>";
  const ReplayComparison compiled = compare_with_replay(machine, plan, {&trace, 1}, ReuseMeasurement::off);
  CHECK(compiled.resources == "gfx906");
  CHECK(compiled.workgroups_per_unit ==
        lower::workgroups_per_unit(machine.waves,
                                   lower::dculab_gpu::find_compiled_kernel("gfx906", trace.kernel).value()));
  // A kernel that the table does not know.
  trace.kernel = "another_kernel<64>";
  CHECK(compare_with_replay(machine, plan, {&trace, 1}, ReuseMeasurement::off).resources == "assumed");
}

}  // namespace dculab::sim::test

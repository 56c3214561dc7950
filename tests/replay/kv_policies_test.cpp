// The kernels of policies and formats of the KV cache: the closed form of their traffic against the replay of what they
// touch. Cases where it is farther off: docs/reference/cache-replay.md, "Where it does not hold".
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/machine_file.hpp"
#include "core/kv/table.hpp"
#include "engine/recording/op_recorder.hpp"
#include "lower/dculab_gpu/matrix_cores.hpp"
#include "sim/memory/replay_comparison.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/retention_policies.hpp"

namespace dculab {
namespace {

struct PolicyCase {
  std::string op;
  KvRetention retention;
  int kv_heads, head_dim, block_size, batch;
  Dtype kv = Dtype::f16;
  int context = 0;  // 0: as much as the cache keeps
  Phase phase = Phase::decode;
};

[[nodiscard]] ModelShape model_of(const PolicyCase& what) {
  ModelShape model;
  model.name = "llama";
  model.layers.assign(1, 0);
  model.kinds[0].gqa().heads = {8, what.kv_heads, what.head_dim};
  model.hidden_size = 64;  // no matrix is compared
  model.kinds[0].mlp.intermediate_size = 64;
  model.vocab_size = 200;
  model.max_position_embeddings = 4096;
  model.dtype = Dtype::f16;
  return model;
}

// Each sequence is at a position of its own.
[[nodiscard]] Batch policy_batch(const PolicyCase& what) {
  const int context =
      what.context > 0 ? what.context : static_cast<int>(kv_capacity(what.retention, what.block_size)) + 1;
  Batch batch = uniform_batch(what.phase, what.batch, context, what.retention, what.block_size);
  for (SequenceSlice& sequence : batch.sequences) {
    const int id = static_cast<int>(sequence.id);
    if (what.context == 0) sequence.num_evicted_tokens += id * what.block_size;
    if (what.context > 0 && what.phase == Phase::decode) sequence.num_computed_tokens += id;
  }
  return batch;
}

// What is held to the replay besides DRAM bytes on machines with one shared cache.
struct Held {
  bool l2_hit_rate = true;
  bool behind_two_caches = true;  // on mi300x
};

// Of the shipped ones, those whose caches differ: lines of 64 and 128 bytes, a last level behind the L2, 32 lanes.
[[nodiscard]] std::vector<sim::Machine> machines(const Held& held) {
  std::vector<const char*> names{"z100", "k100-ai", "mi210", "a100-80gb-sxm"};
  if (held.behind_two_caches) names.push_back("mi300x");
  std::vector<sim::Machine> all;
  for (const char* name : names)
    all.push_back(config::read_machine_file(std::string(DCULAB_SOURCE_DIR) + "/hwmodels/" + name + ".yaml"));
  return all;
}

// Calls report(comparison, machine), with the kernels of each machine's units.
template <class Report>
void replay_policy(const PolicyCase& what, const Held& held, Report&& report) {
  EngineOptions options;
  options.block_size = what.block_size;
  options.kv_cache_dtype = what.kv;
  options.kv_retention = what.retention;
  options.weights = {Dtype::f16, 0};
  const Batch batch = policy_batch(what);
  std::map<std::pair<int, lower::dculab_gpu::Units>, engine::RecordedOp> recorded;  // by wave size and units
  for (const sim::Machine& machine : machines(held)) {
    const std::pair build{machine.waves.wave_size, lower::dculab_gpu::units_of(machine)};
    if (!recorded.contains(build))
      recorded.emplace(build, engine::record_op(model_of(what), options, batch, what.op, build.first, build.second));
    const engine::RecordedOp& op = recorded.at(build);
    report(sim::compare_with_replay(machine, op.plan, op.launches, sim::ReuseMeasurement::off), machine);
  }
}

[[nodiscard]] const sim::ComparedLevel& l2_of(const sim::ReplayComparison& comparison) {
  return *std::ranges::find(comparison.levels, "L2", &sim::ComparedLevel::name);
}

void check_bytes(std::initializer_list<PolicyCase> cases, const Held& held = {}) {
  for (const PolicyCase& what : cases)
    replay_policy(what, held, [&](const sim::ReplayComparison& comparison, const sim::Machine& machine) {
      INFO(what.op << ", " << name(what.retention.policy) << ", " << what.kv_heads << " KV heads of " << what.head_dim
                   << ", blocks of " << what.block_size << ", " << what.batch << " x " << what.context << ", "
                   << name(what.kv) << ", " << machine.name << ", " << comparison.kernel);
      const sim::ComparedLevel &dram = comparison.levels.back(), &l2 = l2_of(comparison);
      CAPTURE(dram.closed_form.value(), dram.replayed.value());
      CHECK(std::abs(dram.closed_form / dram.replayed - 1) <= 0.05);
      CAPTURE(l2.closed_hit_rate, l2.replayed_hit_rate);
      if (held.l2_hit_rate) CHECK(std::abs(l2.closed_hit_rate - l2.replayed_hit_rate) <= 0.05);
      if (!machine.kernel_target.empty() && !lower::is_nvidia(machine)) CHECK(comparison.resources != "assumed");
    });
}

}  // namespace

// Where a head's row ends within a line, a prefill's next token fills that.
TEST_CASE("rows that are no whole lines: closed-form bytes of a prefill are within 5 % of the replay", "[once]") {
  check_bytes({{"rope_and_cache", {}, 8, 64, 16, 2, Dtype::fp8_e4m3, 100, Phase::prefill},
               {"rope_and_cache", {}, 4, 80, 16, 1, Dtype::f16, 40, Phase::prefill},
               {"rope_and_cache", {}, 2, 96, 32, 3, Dtype::bf16, 70, Phase::prefill}});
}

// The rows of new sinks are kept before they are rotated, and each KV head's next token goes to a slot of its own.
TEST_CASE("sinks and H2O: closed-form bytes are within 5 % of the replay", "[once]") {
  check_bytes({{"rope_and_cache", sinks_of(4, 60), 2, 128, 16, 2, Dtype::f16, 60, Phase::prefill},
               {"rope_and_cache", sinks_of(4, 60), 8, 64, 16, 3, Dtype::fp8_e4m3, 8, Phase::prefill},
               {"rope_and_cache", sinks_of(8, 60), 2, 128, 16, 1, Dtype::int8, 50, Phase::prefill},
               {"rope_and_cache", hitters_of(30, 21), 8, 128, 16, 3},
               {"rope_and_cache", hitters_of(30, 21), 4, 128, 16, 7, Dtype::int8},
               {"shift_sink_keys", sinks_of(4, 60), 2, 128, 16, 3},
               {"shift_sink_keys", sinks_of(32, 60), 8, 64, 16, 8, Dtype::fp8_e4m3},
               {"shift_sink_keys", sinks_of(4, 60), 2, 128, 16, 3, Dtype::int8},
               {"shift_sink_keys", sinks_of(20, 60), 8, 64, 16, 8, Dtype::int8},
               {"attention_scores", hitters_of(300, 212), 8, 128, 16, 1, Dtype::int8},
               {"attention_scores", hitters_of(500, 400), 2, 64, 32, 3, Dtype::int8},
               {"attention_scores", hitters_of(300, 212), 8, 128, 16, 1},
               {"attention_scores", hitters_of(200, 312), 2, 128, 16, 4},
               {"attention_scores", hitters_of(300, 212), 8, 128, 16, 1, Dtype::f16, 300},
               {"attention_scores", hitters_of(800, 800), 4, 64, 64, 2, Dtype::bf16}});
  check_bytes({{"rope_and_cache", hitters_of(30, 21), 2, 64, 16, 20, Dtype::fp8_e4m3}}, {.behind_two_caches = false});
}

TEST_CASE("KIVI caches: closed-form bytes are within 5 % of the replay", "[once]") {
  check_bytes({{"attention_decode", {}, 8, 128, 16, 2, Dtype::kivi4, 1500},
               {"attention_decode", {}, 2, 64, 32, 4, Dtype::kivi2, 900},
               {"rope_and_cache", {}, 8, 128, 16, 1, Dtype::kivi4, 640}});
  check_bytes({{"attention_prefill", {}, 2, 128, 16, 1, Dtype::kivi4, 400, Phase::prefill},
               {"attention_prefill", {}, 4, 64, 64, 2, Dtype::kivi2, 300, Phase::prefill},
               {"rope_and_cache", {}, 2, 128, 32, 1, Dtype::kivi2, 320, Phase::prefill}},
              {.l2_hit_rate = false});
}

TEST_CASE("critical blocks: closed-form bytes are within 5 % of the replay", "[once]") {
  check_bytes({{"update_block_bounds", critical(0.25), 8, 64, 32, 20, Dtype::bf16, 200},
               {"update_block_bounds", critical(0.25), 4, 128, 16, 2, Dtype::f16, 300, Phase::prefill},
               {"choose_critical_blocks", critical(0.25), 2, 128, 16, 1, Dtype::f16, 3000},
               {"choose_critical_blocks", critical(0.1), 8, 64, 4, 4, Dtype::f16, 1500},
               {"choose_critical_blocks", critical(0.4), 4, 80, 64, 3, Dtype::fp8_e4m3, 2000},
               {"attention_decode", critical(0.25), 2, 128, 16, 1, Dtype::f16, 4000},
               {"attention_decode", critical(0.1), 8, 64, 4, 4, Dtype::f16, 1500},
               {"attention_decode", critical(0.4), 4, 128, 64, 3, Dtype::bf16, 2000},
               {"attention_decode", critical(0.2), 4, 80, 8, 2, Dtype::fp8_e4m3, 1200}});
  check_bytes({{"update_block_bounds", critical(0.25), 2, 128, 16, 3, Dtype::f16, 700},
               {"update_block_bounds", critical(0.25), 4, 80, 8, 9, Dtype::fp8_e4m3, 77}},
              {.behind_two_caches = false});
}

TEST_CASE("int8 caches: closed-form bytes are within 5 % of the replay", "[once]") {
  check_bytes({{"rope_and_cache", {}, 2, 128, 16, 3, Dtype::int8, 700},
               {"rope_and_cache", {}, 4, 128, 16, 2, Dtype::int8, 300, Phase::prefill},
               {"rope_and_cache", {}, 8, 64, 16, 1, Dtype::int8, 40, Phase::prefill},
               {"attention_decode", {}, 2, 128, 16, 1, Dtype::int8, 3000},
               {"attention_decode", {}, 8, 64, 32, 4, Dtype::int8, 700},
               {"attention_decode", {}, 4, 80, 64, 2, Dtype::int8, 900},
               {"attention_prefill", {}, 2, 128, 16, 2, Dtype::int8, 300, Phase::prefill},
               {"attention_prefill", {}, 8, 64, 32, 1, Dtype::int8, 200, Phase::prefill}});
  check_bytes({{"rope_and_cache", {}, 8, 64, 32, 20, Dtype::int8, 200},
               {"rope_and_cache", {}, 4, 80, 8, 9, Dtype::int8, 77},
               {"attention_decode", {}, 1, 128, 8, 3, Dtype::int8, 1000}},
              {.behind_two_caches = false});
}

}  // namespace dculab

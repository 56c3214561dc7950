// Laws of the points of a search: what a point comes to does not depend on the points before it.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "config/search_chunk.hpp"
#include "config/yaml_text.hpp"
#include "study/search/point_pricer.hpp"
#include "study/search/sweep_space.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::study::test {
namespace {

// Figures, or why there are none.
struct Answer {
  std::string bytes;
  bool is_refused = false;
};

[[nodiscard]] Answer answer_of(PointPricer& pricer, const SweepSpace& space, std::uint64_t point) {
  config::SearchChunk chunk(space.metrics().size());
  pricer.price(point, chunk);
  return {config::encode(chunk) + chunk.refusal, chunk.points.front().outcome == config::Outcome::refused};
}

// What prices, which round and take the larger of two, may hide.
void check_same(const SweepCase& kept, const SweepCase& fresh) {
  CHECK(kept.machine.name == fresh.machine.name);
  CHECK(kept.machine.stack.name == fresh.machine.stack.name);
  CHECK(kept.machine.dram().bandwidth == fresh.machine.dram().bandwidth);
  CHECK(kept.model == fresh.model);
  CHECK(kept.options == fresh.options);
  CHECK(kept.scenario.workload.cached_tokens == fresh.scenario.workload.cached_tokens);
  CHECK(kept.requests.requests == fresh.requests.requests);
  CHECK(kept.scenario.slo.slowdown == fresh.scenario.slo.slowdown);
  CHECK(kept.scenario.deployment.devices() == fresh.scenario.deployment.devices());
}

// The next value of an axis, and where that was the last one the first with another value of slower axes.
[[nodiscard]] std::uint64_t neighbour(const SweepSpace& space, std::uint64_t point, std::size_t axis) {
  std::uint64_t stride = 1;
  for (std::size_t faster = axis + 1; faster < space.axes().size(); ++faster) stride *= space.axes()[faster].size();
  return (point + stride) % space.size();
}

// Of `count` points, some far from the one before and most next to it.
void check_any_order(const std::string& yaml, int count) {
  const SweepSpace space(config::read_scenario("s.yaml", config::parse_yaml("s.yaml", yaml)));
  PointPricer kept(space);
  std::mt19937_64 random(1);
  int refused = 0;
  std::uint64_t point = 0;
  for (int index = 0; index < count; ++index) {
    const bool far = index % 4 == 0;
    point = far ? random() % space.size() : neighbour(space, point, random() % space.axes().size());
    if (thinned_out(static_cast<std::size_t>(index) / 4, 8)) continue;
    CAPTURE(yaml, index, point);
    PointPricer fresh(space);
    const Answer expected = answer_of(fresh, space, point);
    const Answer answer = answer_of(kept, space, point);
    REQUIRE(answer.bytes == expected.bytes);
    refused += answer.is_refused ? 1 : 0;
    if (!answer.is_refused) check_same(kept.at(point), fresh.at(point));
  }
  CHECK(refused > 0);
  CHECK(refused < count / 8 * (kSanitized ? 1 : 7));
}

const std::string kCursorHead = "schema: dculab/scenario/1\nquestion: What is best?\nmodel: llama-3-8b\n";

TEST_CASE("a step comes to the same after any other point, refused or not") {
  check_any_order(kCursorHead + R"(machines: [z100, k100-ai, h100-sxm]
workload: {phase: decode, batch: 2, context_tokens: 2000}
sweep:
  workload.phase: [prefill, decode]
  workload.context_tokens: [48, 2000, 9000]
  model.num_key_value_heads: [8, 2, 3]
  stack: [dculab, vllm]
  weights: [f16, gptq-int4]
  kv_cache.block_size: [16, 64]
  kv_cache: [{dtype: f16}, {dtype: kivi4, residual_tokens: 64}, {retention: window, window_tokens: 256}]
  attention.partition_tokens: [0, 256]
  machine.memory.DRAM.bandwidth: [500 GB/s, 1 TB/s]
  engine.max_num_seqs: [64, 256]
objective: {maximize: tokens_per_second, subject_to: {step_time: "<= 50 ms"}}
)",
                  2000);
}

TEST_CASE("a section as an axis takes the place of what was there, before and after its keys") {
  check_any_order(kCursorHead + R"(machine: z100
workload: {phase: decode, batch: 2, context_tokens: 2000}
sweep:
  workload.batch: [1, 16]
  workload: [{context_tokens: 300}, {phase: prefill, cached_tokens: 10}, {context_tokens: 9000}]
  workload.context_tokens: [5, 2000]
  model.num_key_value_heads: [8, 4]
  model: [llama-3-8b, llama-2-7b]
  kv_cache.dtype: [f16, int8]
  machine: [z100, k100-ai]
  activations: [exact, int8]
constraints: [workload.batch <= max_sequences]
)",
                  800);
}

TEST_CASE("served requests come to the same after any other point, refused or not") {
  check_any_order(kCursorHead + R"(machine: z100
workload: {requests: 6, prompt_tokens: 200, output_tokens: 8}
slo: {ttft: 1 s}
sweep:
  workload.requests: [3, 6]
  workload.prompt_tokens: [200, {distribution: lognormal, median: 100, sigma: 1}]
  engine.max_num_batched_tokens: [64, 512]
  engine.enable_chunked_prefill: [true, false]
  kv_cache.retention: [all, window]
  kv_cache.window_tokens: [64, 128]
  slo.slowdown: [5, 10]
  deployment.tensor_parallel_size: [1, 2, 3]
  model.num_key_value_heads: [8, 4]
objective: {maximize: output_tokens_per_second}
)",
                  240);
}

}  // namespace
}  // namespace dculab::study::test

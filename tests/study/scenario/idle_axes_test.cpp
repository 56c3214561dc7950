// Axes that change nothing are refused, and no others.
#include "study/scenario/idle_axes.hpp"

#include <string>

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "tests/study/workloads.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

config::Scenario llama_3_scenario(const std::string& more) {
  return config::read_scenario(
      "s.yaml", config::parse_value(
                    "s.yaml", "schema: dculab/scenario/1\nquestion: q\nmodel: llama-3-8b\nmachine: z100\n" + more));
}

// What is refused of a sweep; "" where nothing is.
std::string refusal(const std::string& workload, const std::string& axis) {
  try {
    refuse_idle_axes(llama_3_scenario(workload + "sweep: {" + axis + "}\n"));
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("what schedules requests changes no step's price, and is swept where requests are served") {
  for (const std::string axis : {"engine.batching: [continuous, static]", "engine.enable_prefix_caching: [true, false]",
                                 "engine.enable_chunked_prefill: [true, false]", "kv_cache.skip: [none, padding]"}) {
    CAPTURE(axis);
    CHECK_THAT(refusal(kStep, axis), ContainsSubstring("sweep." + axis.substr(0, axis.find(':')) +
                                                       ": changes no predicted time of a step; serve requests"));
    CHECK(refusal(kRequests, axis).empty());
  }
}

TEST_CASE("what takes memory or time of a step is swept") {
  for (const std::string axis :
       {"engine.max_num_seqs: [8, 64]", "engine.max_num_batched_tokens: [512, 2048]", "kv_cache.block_size: [16, 32]",
        "model.num_key_value_heads: [8, 4]", "machine.memory.DRAM.bandwidth: [1 TB/s, 2 TB/s]"}) {
    CAPTURE(axis);
    CHECK(refusal(kStep, axis).empty());
    CHECK(refusal(kRequests, axis).empty());
  }
}

TEST_CASE("what is asked about the points, and how they are measured, changes none of them") {
  for (const std::string& workload : {kStep, kRequests}) {
    CHECK_THAT(refusal(workload, "measure.repeats: [1, 2]"),
               ContainsSubstring("sweep.measure.repeats: changes no predicted time"));
    CHECK_THAT(refusal(workload, "slo.share: [0.5, 0.9]"), ContainsSubstring("slo: limits nothing"));
  }
  CHECK_THAT(refusal(kStep, "slo.ttft: [1 s, 2 s]"), ContainsSubstring("sweep.slo.ttft: changes no predicted time"));
  CHECK(refusal(kRequests, "slo.ttft: [1 s, 2 s]").empty());  // goodput counts by it
}

TEST_CASE(
    "a variant of a comparison that changes no predicted time is refused by its name, however requests are served") {
  const auto compared = [](const std::string& workload, const std::string& changes) {
    return llama_3_scenario(workload + "compare:\n  baseline: plain\n  variants:\n    - {name: other, changes: {" +
                            changes + "}}\n");
  };
  CHECK_NOTHROW(refuse_idle_axes(compared(kStep, "kv_cache.block_size: 32")));
  for (const std::string& workload : {kStep, kRequests})
    CHECK_THROWS_WITH(
        refuse_idle_axes(compared(workload, "engine.preemption_mode: swap")),
        ContainsSubstring("compare.variants: other: engine.preemption_mode changes no predicted time; remove it"));
}

}  // namespace
}  // namespace dculab::study

// The searches that several tests ask.
#pragma once

#include <string>

namespace dculab::cli::test {

inline const std::string kHead =
    "schema: dculab/scenario/1\nquestion: What is best?\nmodel: llama-3-8b\nmachine: z100\n";
inline const std::string kRequests = "workload: {requests: 8, prompt_tokens: 100, output_tokens: 20}\n";
inline const std::string kSearch = kHead + R"(workload: {phase: decode, batch: 16, context_tokens: 2000}
sweep:
  workload.batch: {from: 1, to: 64, factor: 2}
  kv_cache.block_size: [1, 16, 64]
  weights: [f16, gptq-int4]
objective: {maximize: tokens_per_second, subject_to: {step_time: "<= 40 ms"}}
constraints: [workload.batch <= max_sequences]
pareto: {minimize: [step_time], maximize: [tokens_per_second]}
)";

}  // namespace dculab::cli::test

// How long a request takes with nobody else there, on the same deployment: its prompt in chunks of
// max_num_batched_tokens, the KV cache's way to a decode replica if it has one, and a decode for each further token.
// Nothing of the prompt is cached.
//
// Every context is priced once, when it is first asked for: memory grows with the longest context, not with requests.
#pragma once

#include <unordered_map>
#include <vector>

#include "sim/serving/parallel_executor.hpp"
#include "sim/serving/virtual_engine.hpp"

namespace dculab::sim {

class AloneLatency {
 public:
  // `parts` must outlive this. Precondition: the engine keeps all tokens (kv_retention).
  explicit AloneLatency(const EngineParts& parts);
  AloneLatency(const AloneLatency&) = delete;
  AloneLatency& operator=(const AloneLatency&) = delete;

  // Precondition: both are at least 1.
  [[nodiscard]] Seconds latency(int prompt_tokens, int output_tokens);

 private:
  [[nodiscard]] Seconds step(const SequenceSlice& slice);
  [[nodiscard]] Seconds prefill(int prompt_tokens);
  [[nodiscard]] Seconds decodes(int context_tokens);

  const EngineParts& parts_;
  VirtualClock clock_;  // stands still
  StageTimes stages_;
  ParallelExecutor executor_;
  StepPlan plan_;
  std::vector<Seconds> whole_chunks_{Seconds{}};  // [chunks before the last one] -> together
  std::unordered_map<int, Seconds> last_chunk_;   // by prompt length
  std::vector<Seconds> decodes_{Seconds{}};       // [context] -> steps of all contexts up to it
};

}  // namespace dculab::sim

// How long a request takes alone, on the same deployment: its prompt in chunks of max_num_batched_tokens, the KV
// cache's way to a decode replica if it has one, and a decode for each further token.
// Nothing of the prompt is cached. Where other tenants use the machine's caches too, the request comes after a long
// rest.
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
  struct Step {
    Seconds until;          // of it and all before it
    double cold_after = 0;  // how cold the next one finds the caches
  };
  [[nodiscard]] Step step(const SequenceSlice& slice, const Step& before);
  [[nodiscard]] Step prefill(int prompt_tokens);
  [[nodiscard]] Step decodes(int context_tokens);

  const EngineParts& parts_;
  VirtualClock clock_;  // stands still
  StageTimes stages_;
  ParallelExecutor executor_, decoder_;  // the same devices but where decodes have pools of their own
  StepPlan plan_;
  CacheWarmth warmth_;
  std::vector<Step> whole_chunks_;          // [chunks before the last one]
  std::unordered_map<int, Step> prefills_;  // by prompt length
  std::vector<Step> decodes_;               // [context]: the last of those from context 1 on
};

}  // namespace dculab::sim

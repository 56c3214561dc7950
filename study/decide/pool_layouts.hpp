// How the devices of a replica that only prefills, or only decodes, can share a model, and what it does at full load.
//
//   prefill   requests per second = prompts of a step / the longer of step and KV transfer  (sim/study/service_run.hpp)
//   decode    the batch as of a replica that does both (sim/study/serving_setting.hpp), of steps without prefills
//
// A Layout's `served` is then: output tokens per second that the requests have in the end, of both pools; batch of a
// decode replica as always, of a prefill replica the prompts of a step. Layouts with pipeline stages are left out:
// decode replicas of vLLM's connectors have none.
#pragma once

#include <vector>

#include "study/decide/tried_layout.hpp"

namespace dculab::study {

struct PoolLayout {
  Tried tried;
  Seconds alone{};  // prefill: until the first token of a prompt alone; decode: a step of one sequence
};

// Layouts of up to `most_devices` devices with each of the formats, fewer devices first; batch 0 and why_not where a
// replica of the pool cannot serve. `link`: how KV crosses to the decode replicas. Precondition: role is prefill or
// decode.
[[nodiscard]] std::vector<PoolLayout> pool_layouts(ReplicaRole role, const LayoutQuestion& question,
                                                   const sim::Deployment& link, const std::vector<Dtype>& kv_dtypes,
                                                   int most_devices);

// Of a replica of the pool. Precondition: layout.served.batch > 0.
[[nodiscard]] double requests_per_second(const Layout& layout, const sim::SteadyLoad& load);

// That carry `rate` requests per second at `share` of what each serves; kMostReplicas + 1 at most.
[[nodiscard]] int replicas_for(const Layout& layout, const sim::SteadyLoad& load, double rate, double share);

// Of a request that waits for nobody: its prompt alone, and decode steps of as many sequences as a replica has at
// `rate` requests per second of its own, by Little's law. Steps between those of one sequence and of a full batch are
// interpolated. Preconditions: both serve, and `rate` is at most requests_per_second() of the decode layout.
[[nodiscard]] Seconds latency_without_waits(const PoolLayout& prefill, const PoolLayout& decode, double rate);

}  // namespace dculab::study

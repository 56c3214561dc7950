// Serves requests of token ids in real time, as they arrive.
#pragma once

#include <functional>
#include <vector>

#include "core/replica_roles.hpp"
#include "core/serving_loop.hpp"
#include "core/serving_metrics.hpp"
#include "core/serving_timeline.hpp"
#include "core/workload.hpp"
#include "engine/generate/open_model.hpp"

namespace dculab::engine {

// One of several replicas.
struct ServedReplica {
  ReplicaRole role = ReplicaRole::both;  // in the end
  int role_switches = 0;
  std::int64_t requests = 0;  // that ended there
  std::int64_t num_steps = 0;
  int num_preemptions = 0;
  Seconds busy;  // sum of the steps
  DraftCounts drafts{};
  Seconds drafting{};            // beside busy
  HeadSetCounts head_sets{};     // see ServedWorkload
  std::int64_t handed_over = 0;  // prompts, to another replica,
  Bytes handed_over_bytes{};     // of K and V,
  Seconds sending, receiving;    // and how long it took to copy them out of and into this replica's KV cache
};

struct ServedWorkload {
  ServingMetrics metrics;
  ServingTimeline timeline;
  std::int64_t num_steps = 0;
  int num_preemptions = 0;
  Seconds busy;  // sum of the steps
  DraftCounts drafts{};
  Seconds drafting{};                     // beside busy
  HeadSetCounts head_sets{};              // of a model with two sets of KV heads
  std::vector<ServedReplica> replicas{};  // where there are several
};

struct ServeCallbacks {
  std::function<void()> on_finished{};  // a request
  // A step begins where the one before ended, unless the engine waited for a request: what the host does in between, as
  // handing out tokens, is part of it.
  std::function<void(const ServedStep&)> on_step{};
  // The latency of a request alone: for an objective for the slowdown.
  std::function<Seconds(int prompt_tokens, int output_tokens)> alone_latency{};
};

// With the model's KV blocks. Precondition: problems(workload) is empty. Throws InputError for a request that can
// never be served.
[[nodiscard]] ServedWorkload serve(OpenModel& model, const EngineOptions& options, const RequestWorkload& workload,
                                   const ServiceLevel& objective = {}, const ServeCallbacks& callbacks = {});

}  // namespace dculab::engine

// Serves requests of token ids in real time on several replicas of this machine, and prefill and decode on replicas of
// their own where asked to: the engine's side of what sim/serving/cluster simulates.
//
// A prompt that is handed over is copied block by block out of the prefill replica's KV cache when its first token is
// known, and into the decode replica's when that has blocks for it, between two of its steps.
#pragma once

#include <functional>
#include <optional>

#include "engine/generate/open_model.hpp"
#include "engine/generate/replica_desk.hpp"
#include "engine/generate/replica_threads.hpp"
#include "engine/generate/serve.hpp"

namespace dculab::engine {

// Replicas of a model, each with its part of the threads and of the memory that GeneratorOptions ask for all of them.
// `options` are served_options(). Throws InputError for devices other than the CPU.
[[nodiscard]] std::unique_ptr<ReplicaThreads> open_replicas(const ModelWeights& weights, const EngineOptions& options,
                                                            const GeneratorOptions& asked, int replicas);

// The same with the KV blocks and the threads of each replica.
[[nodiscard]] std::unique_ptr<ReplicaThreads> open_replicas(const ModelWeights& weights, const EngineOptions& options,
                                                            const DraftWeights& draft, int num_blocks, int num_threads,
                                                            int replicas);

// The next request, of one sample (n = 1), with arrivals that do not descend; nothing when all have been given out.
using NextRequest = std::function<std::optional<Request>()>;

struct ReplicaCallbacks {
  // One at a time. Sequences as if one server had served them.
  std::function<void(const Sequence&)> on_finished{};
  // One at a time. See ServeCallbacks::on_step.
  std::function<void(const ServedStep&, int replica)> on_step{};
};

// What serve() gives, with the replicas; metrics are the caller's to gather. Preconditions: problems() of choices and
// options are empty; as many replicas as choices has. Throws InputError for a request that can never be served.
[[nodiscard]] ServedWorkload serve_on_replicas(ReplicaThreads& replicas, const EngineOptions& options,
                                               const ReplicaChoices& choices, const NextRequest& next,
                                               const ReplicaCallbacks& callbacks = {});

// A workload, with its metrics.
[[nodiscard]] ServedWorkload serve_on_replicas(ReplicaThreads& replicas, const EngineOptions& options,
                                               const ReplicaChoices& choices, const RequestWorkload& workload,
                                               const ServiceLevel& objective = {},
                                               const ReplicaCallbacks& callbacks = {});

}  // namespace dculab::engine

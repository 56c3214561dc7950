// The steps behind the figures that engines are published with.
//
//   served requests  all submitted at once, scheduled by core/scheduler.hpp with the KV blocks that fit in memory
//                    (chunked prefill, preemption by recompute), until the last one ends. Its steps are known before
//                    anything is priced. Those with and those without prefill are each cut into at most 12 equal runs,
//                    and a run is represented by its middle step.
//   prefill          one prompt in chunks of max_num_batched_tokens, behind tokens that are in the cache already
//   decode           `batch` sequences, contexts growing from first to last token: 8 equal parts, their middles
//
// A decode step's time is close to linear in its context, so middles integrate it exactly.
#pragma once

#include "core/engine_options.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/measured_run.hpp"

namespace dculab::sim {

struct Server {
  Machine machine;  // one device
  ModelShape model;
  EngineOptions options;
  int devices = 1;
  double layer_weight_scale = 1;  // bytes of the layers' matrices, over those of options.weights
};

// Everything that keeps the server from running the model; empty when nothing does.
[[nodiscard]] std::vector<std::string> problems(const Server& server);

// Preconditions of all: problems(server) is empty; counts are at least 1.

// From the first step to the last. Throws InputError when a request does not fit in memory or in the model's context.
[[nodiscard]] MeasuredRun served_requests(const Server& server, int requests, int prompt_tokens, int output_tokens);

[[nodiscard]] MeasuredRun prefill(const Server& server, int prompt_tokens, int cached_tokens = 0);

// The steps whose contexts are first_context to last_context tokens long.
[[nodiscard]] MeasuredRun decode(const Server& server, int batch, int first_context, int last_context);

}  // namespace dculab::sim

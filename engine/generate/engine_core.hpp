// A model that serves: the serving loop with the model's KV blocks, its executor, a sampler and whoever drafts. Text,
// requests over time, replicas and measurements of served requests start here. The name is vLLM's
// (vllm/v1/engine/core.py); the simulator's counterpart is sim/serving/virtual_engine.hpp.
#pragma once

#include <utility>

#include "core/scheduler.hpp"
#include "core/serving_loop.hpp"
#include "engine/generate/logits_source.hpp"
#include "engine/generate/open_model.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {

class EngineCore {
 public:
  // `model`, `options` and `clock` must outlive it. The options are those that the model was opened with, or the same
  // without a speculative_config: then nothing is drafted.
  EngineCore(OpenModel& model, const EngineOptions& options, Clock& clock, RequestRecords records,
             ServingCallbacks callbacks)
      : scheduler_(options, model.scheduler_limits()),
        tokens_(*model.executor, options.speculative_config, model.few_heads.get()),
        few_options_(options_with_few(model, options)),
        loop_({.plan = planner_of(model.executor->planned_model(), options),
               .scheduler = scheduler_,
               .executor = *model.executor,
               .tokens = tokens_,
               .clock = clock,
               .records = records,
               .drafter = options.speculative_config.enabled() ? model.drafts.drafter.get() : nullptr,
               .few_heads = few_heads_of(model)},
              std::move(callbacks)) {}
  EngineCore(const EngineCore&) = delete;
  EngineCore& operator=(const EngineCore&) = delete;

  [[nodiscard]] ServingLoop& loop() { return loop_; }
  [[nodiscard]] const ServingLoop& loop() const { return loop_; }
  [[nodiscard]] const Scheduler& scheduler() const { return scheduler_; }

 private:
  [[nodiscard]] static EngineOptions options_with_few(const OpenModel& model, EngineOptions options) {
    if (model.few_heads) options.block_size = model.few_heads->kv_cache().block_size;
    return options;
  }
  [[nodiscard]] HeadSetParts few_heads_of(OpenModel& model) const {
    if (!model.few_heads) return {};
    return {planner_of(model.few_heads->planned_model(), few_options_), model.few_heads.get()};
  }

  Scheduler scheduler_;
  LogitsSource tokens_;
  EngineOptions few_options_;  // of steps with the second set of heads
  ServingLoop loop_;
};

}  // namespace dculab::engine

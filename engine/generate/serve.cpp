#include "engine/generate/serve.hpp"

#include <algorithm>
#include <optional>

#include "core/scheduler.hpp"
#include "core/serving_loop.hpp"
#include "engine/generate/logits_source.hpp"
#include "engine/generate/wall_clock.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {

ServedWorkload serve(ModelExecutor& executor, const EngineOptions& options, const RequestWorkload& workload,
                     const ServiceLevel& objective, const ServeCallbacks& callbacks) {
  Scheduler scheduler(options, {.num_blocks = executor.kv_cache().num_blocks,
                                .max_position_embeddings = executor.shape().max_position_embeddings,
                                .num_host_blocks = executor.kv_cache().num_host_blocks});
  LogitsSource tokens(executor);
  WallClock clock;
  ServedWorkload served;
  served.metrics = ServingMetrics(objective);
  const auto finish = [&](const Sequence& sequence) {
    served.metrics.add(sequence);
    if (callbacks.on_finished) callbacks.on_finished();
  };
  std::optional<Seconds> previous_end;
  const auto see_step = [&](const ServedStep& step) {
    ServedStep whole = step;
    if (previous_end) whole.begin = std::max(*previous_end, clock.woken());
    previous_end = step.end;
    served.timeline.add(whole);
    if (callbacks.on_step) callbacks.on_step(whole);
  };
  ServingLoop loop(
      {planner_of(executor.planned_model(), options), options, scheduler, executor, tokens, clock, RequestRecords::drop},
      {.on_finished = finish, .on_step = see_step});
  RequestSource source(workload);
  loop.run(source);
  served.num_steps = loop.report().num_steps;
  served.num_preemptions = scheduler.num_preemptions();
  served.busy = loop.report().executor_time;
  return served;
}

}  // namespace dculab::engine

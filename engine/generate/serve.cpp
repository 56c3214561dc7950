#include "engine/generate/serve.hpp"

#include <algorithm>
#include <optional>

#include "core/scheduler.hpp"
#include "core/serving_loop.hpp"
#include "engine/generate/logits_source.hpp"
#include "engine/generate/wall_clock.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {

ServedWorkload serve(OpenModel& model, const EngineOptions& options, const RequestWorkload& workload,
                     const ServiceLevel& objective, const ServeCallbacks& callbacks) {
  ModelExecutor& executor = *model.executor;
  Scheduler scheduler(options, model.scheduler_limits());
  LogitsSource tokens(executor, options.speculative_config);
  WallClock clock;
  ServedWorkload served;
  served.metrics = ServingMetrics(objective);
  const auto finish = [&](const Sequence& sequence) {
    std::optional<Seconds> alone;
    if (callbacks.alone_latency)
      alone = callbacks.alone_latency(sequence.num_prompt_tokens(), sequence.num_generated());
    served.metrics.add(sequence, alone);
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
  ServingLoop loop({.plan = planner_of(executor.planned_model(), options),
                    .options = options,
                    .scheduler = scheduler,
                    .executor = executor,
                    .tokens = tokens,
                    .clock = clock,
                    .records = RequestRecords::drop,
                    .drafter = model.drafts.drafter.get()},
                   {.on_finished = finish, .on_step = see_step});
  RequestSource source(workload);
  loop.run(source);
  served.num_steps = loop.report().num_steps;
  served.num_preemptions = scheduler.num_preemptions();
  served.busy = loop.report().executor_time;
  served.drafts = loop.report().drafts;
  served.drafting = loop.report().drafting;
  return served;
}

}  // namespace dculab::engine

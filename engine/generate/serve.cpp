#include "engine/generate/serve.hpp"

#include <algorithm>
#include <optional>

#include "engine/generate/engine_core.hpp"
#include "engine/generate/wall_clock.hpp"

namespace dculab::engine {

ServedWorkload serve(OpenModel& model, const EngineOptions& options, const RequestWorkload& workload,
                     const ServiceLevel& objective, const ServeCallbacks& callbacks) {
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
  EngineCore core(model, options, clock, RequestRecords::drop, {.on_finished = finish, .on_step = see_step});
  RequestSource source(workload);
  core.loop().run(source);
  const ServingReport& report = core.loop().report();
  served.num_steps = report.num_steps;
  served.num_preemptions = core.scheduler().num_preemptions();
  served.busy = report.executor_time;
  served.drafts = report.drafts;
  served.drafting = report.drafting;
  served.head_sets = core.scheduler().head_sets();
  return served;
}

}  // namespace dculab::engine

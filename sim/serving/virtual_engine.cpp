#include "sim/serving/virtual_engine.hpp"
#include "model/plan_step.hpp"

#include <stdexcept>
#include <utility>

namespace dculab::sim {
namespace {

class AlwaysTheSame final : public TokenSource {
 public:
  TokenId next_token(const Sequence&, int) override { return 0; }
};

[[nodiscard]] TokenSource& token_source() {
  static AlwaysTheSame tokens;  // has no state
  return tokens;
}

}  // namespace

VirtualEngine::VirtualEngine(const EngineParts& parts, ReplicaRole role, StageTimes& stages, ServingCallbacks callbacks)
    : scheduler_(parts.options,
                 {.num_blocks = parts.blocks_of(role),
                  .max_position_embeddings = parts.model.max_position_embeddings,
                  .num_host_blocks = parts.num_host_blocks,
                  .kv_demand = kv_demand(parts.model, parts.options.kv_cache_dtype,
                                         parts.machine.stack.frees_windows && !parts.options.enable_prefix_caching)},
                 BatchContents::lengths_only),
      executor_(parts.machine, parts.model, parts.options, parts.deployment.of(role), clock_, stages, parts.step_scale),
      loop_({planner_of(executor_.planned_model(), parts.options), parts.options, scheduler_, executor_, token_source(),
             clock_, RequestRecords::drop,
             parts.machine.stack.host_steps_ahead > 0 ? Scheduling::one_step_ahead : Scheduling::between_steps},
            watched(std::move(callbacks))) {}

ServingCallbacks VirtualEngine::watched(ServingCallbacks callbacks) {
  ServingCallbacks all;
  all.on_step = [this, asked = std::move(callbacks.on_step)](const ServedStep& step) {
    timeline_.add(step);
    during_step_ = now_;
    now_.tokens += static_cast<std::int64_t>(step.scheduler.sampled().size());
    if (asked) asked(step);
  };
  all.on_finished = [this, asked = std::move(callbacks.on_finished)](const Sequence& sequence) {
    --now_.requests;
    now_.tokens -= sequence.num_tokens();
    if (asked) asked(sequence);
  };
  return all;
}

void VirtualEngine::submit(Request request) {
  const ReplicaLoad more{1, static_cast<std::int64_t>(request.prompt_token_ids.size())};
  if (!is_busy()) clock_.wait_until(request.arrival);
  now_ += more;
  during_step_ += more;
  if (const auto reason = loop_.submit(std::move(request))) throw std::logic_error("virtual engine: " + *reason);
}

}  // namespace dculab::sim

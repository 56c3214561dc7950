#include "sim/serving/virtual_engine.hpp"
#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace dculab::sim {
namespace {

[[nodiscard]] int tokens_per_slot_of_few(const EngineParts& parts, ReplicaRole role) {
  if (parts.few_heads == nullptr) return 1;
  const EngineOptions few =
      options_of_few(parts.deployment.of(role), parts.machine, parts.model, parts.few_heads->model, parts.options);
  return few.block_size / parts.options.block_size;
}

[[nodiscard]] std::int64_t sampled_in(const Batch& batch) {
  return std::ranges::count_if(batch.sequences, [](const SequenceSlice& slice) { return slice.num_logits > 0; });
}

[[nodiscard]] bool drafts(const EngineParts& parts) {
  return parts.speculation != nullptr && parts.options.speculative_config.enabled();
}

// A smaller model looks back as far as it was made for.
[[nodiscard]] int draft_context(const EngineParts& parts) {
  const bool has_model = drafts(parts) && parts.speculation->draft;
  return has_model ? parts.speculation->draft->max_position_embeddings : kLongestContext;
}

[[nodiscard]] std::optional<DraftWork> draft_work_of(const EngineParts& parts, ReplicaRole role) {
  if (!drafts(parts)) return std::nullopt;
  return std::optional<DraftWork>(std::in_place, parts.machine, parts.model, parts.options, parts.deployment.of(role),
                                  *parts.speculation);
}

[[nodiscard]] std::optional<SimulatedDrafter> drafter_of(const EngineParts& parts,
                                                         const std::optional<DraftWork>& work) {
  if (!work) return std::nullopt;
  return std::optional<SimulatedDrafter>(std::in_place, *work, parts.options.speculative_config.shape,
                                         parts.step_scale);
}

}  // namespace

VirtualEngine::Few::Few(const EngineParts& parts, ReplicaDevices devices, const Clock& clock, StageTimes& stages)
    : options(options_of_few(devices, parts.machine, parts.model, parts.few_heads->model, parts.options)),
      executor(parts.machine, parts.few_heads->model, options, devices, clock, stages, parts.step_scale) {}

VirtualEngine::VirtualEngine(const EngineParts& parts, ReplicaRole role, StageTimes& stages, ServingCallbacks callbacks)
    : scheduler_(parts.options,
                 {.num_blocks = parts.blocks_of(role),
                  .max_position_embeddings = parts.model.max_position_embeddings,
                  .num_host_blocks = parts.num_host_blocks,
                  .kv_demand = kv_demand(parts.model, parts.options.kv_cache_dtype,
                                         parts.machine_of(role).stack.frees_windows && !parts.options.shares_blocks()),
                  .draft_context = draft_context(parts),
                  .few_tokens_per_slot = tokens_per_slot_of_few(parts, role)},
                 BatchContents::lengths_only),
      executor_(parts.machine_of(role), parts.model, parts.options, parts.deployment.of(role), clock_, stages,
                parts.step_scale),
      few_(parts.few_heads == nullptr
               ? std::nullopt
               : std::optional<Few>(std::in_place, parts, parts.deployment.of(role), clock_, stages)),
      draft_work_(draft_work_of(parts, role)),
      drafter_(drafter_of(parts, draft_work_)),
      tokens_(draft_work_ ? &parts.speculation->acceptance : nullptr),
      loop_({planner_of(executor_.planned_model(), parts.options), scheduler_, executor_, tokens_, clock_,
             RequestRecords::drop,
             parts.machine_of(role).stack.host_steps_ahead > 0 ? Scheduling::one_step_ahead : Scheduling::between_steps,
             drafter_ ? &*drafter_ : nullptr,
             few_ ? HeadSetParts{planner_of(few_->executor.planned_model(), few_->options), &few_->executor}
                  : HeadSetParts{}},
            watched(std::move(callbacks))) {
  if (draft_work_) executor_.set_beside(draft_work_->memory().weights);
}

Joules VirtualEngine::active_energy() const {
  Joules total = executor_.active_energy();
  if (few_) total += few_->executor.active_energy();
  if (drafter_) total += drafter_->active_energy();
  return total;
}

ServingCallbacks VirtualEngine::watched(ServingCallbacks callbacks) {
  ServingCallbacks all;
  all.on_step = [this, asked = std::move(callbacks.on_step)](const ServedStep& step) {
    timeline_.add(step);
    during_step_ = now_;
    now_.tokens += sampled_in(step.plan.batch) + step.drafts.num_accepted_tokens;
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

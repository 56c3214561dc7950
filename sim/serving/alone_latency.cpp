#include "sim/serving/alone_latency.hpp"
#include "model/plan_step.hpp"

#include <algorithm>

namespace dculab::sim {
namespace {

constexpr double kAsCold = 0.01;  // a decode is no colder than after many others

[[nodiscard]] ReplicaDevices devices_of(const Deployment& deployment, ReplicaRole role) {
  return deployment.of(deployment.is_disaggregated() ? role : ReplicaRole::both);
}

}  // namespace

AloneLatency::AloneLatency(const EngineParts& parts)
    : parts_(parts),
      stages_(
          static_cast<std::size_t>(std::max(devices_of(parts.deployment, ReplicaRole::prefill).pipeline_parallel_size,
                                            devices_of(parts.deployment, ReplicaRole::decode).pipeline_parallel_size))),
      executor_(parts.machine, parts.model, parts.options, devices_of(parts.deployment, ReplicaRole::prefill), clock_,
                stages_, parts.step_scale),
      decoder_(parts.machine_of(ReplicaRole::decode), parts.model, parts.options,
               devices_of(parts.deployment, ReplicaRole::decode), clock_, stages_, parts.step_scale),
      warmth_(parts.machine),
      whole_chunks_{{.until = {}, .cold_after = warmth_.cold_share_after_rest()}},
      decodes_(1) {}

Seconds AloneLatency::latency(int prompt_tokens, int output_tokens) {
  Step now = prefill(prompt_tokens);
  now.until += parts_.machine.stack.reading_time(static_cast<std::size_t>(prompt_tokens));
  if (output_tokens == 1) return now.until;
  const int last = prompt_tokens + output_tokens - 1;
  int context = prompt_tokens;
  for (; context < last && now.cold_after > decodes(context).cold_after + kAsCold; ++context)
    now = step({.phase = Phase::decode, .num_computed_tokens = context}, now);
  Seconds total = now.until + (decodes(last).until - decodes(context).until);
  if (parts_.deployment.is_disaggregated())
    total +=
        kv_sending_time(parts_.deployment, parts_.machine, parts_.model, parts_.options.kv_cache_dtype, prompt_tokens) +
        kv_latency(parts_.deployment, parts_.machine);
  return total;
}

AloneLatency::Step AloneLatency::step(const SequenceSlice& slice, const Step& before) {
  std::ranges::fill(stages_, Seconds{});
  plan_.batch.sequences.assign(1, slice);
  plan_.batch.cold_share = before.cold_after;
  ParallelExecutor& executor = slice.phase == Phase::prefill ? executor_ : decoder_;
  plan_step_into(plan_, executor.planned_model(), parts_.options);
  const Seconds duration = executor.run(plan_).duration;
  return {.until = before.until + duration, .cold_after = warmth_.cold_share_after(before.cold_after, duration)};
}

AloneLatency::Step AloneLatency::prefill(int prompt_tokens) {
  const int chunk = parts_.options.max_num_batched_tokens;
  const int before = (prompt_tokens - 1) / chunk;
  const auto slice = [chunk](int chunks_before, int tokens, int logits) {
    return SequenceSlice{.phase = Phase::prefill,
                         .num_computed_tokens = chunks_before * chunk,
                         .num_new_tokens = tokens,
                         .num_logits = logits};
  };
  while (static_cast<int>(whole_chunks_.size()) <= before)
    whole_chunks_.push_back(step(slice(static_cast<int>(whole_chunks_.size()) - 1, chunk, 0), whole_chunks_.back()));
  const auto [whole, is_new] = prefills_.try_emplace(prompt_tokens);
  if (is_new)
    whole->second =
        step(slice(before, prompt_tokens - before * chunk, 1), whole_chunks_[static_cast<std::size_t>(before)]);
  return whole->second;
}

AloneLatency::Step AloneLatency::decodes(int context_tokens) {
  while (static_cast<int>(decodes_.size()) <= context_tokens) {
    const int before = static_cast<int>(decodes_.size()) - 1;
    decodes_.push_back(step({.phase = Phase::decode, .num_computed_tokens = before}, decodes_.back()));
  }
  return decodes_[static_cast<std::size_t>(context_tokens)];
}

}  // namespace dculab::sim

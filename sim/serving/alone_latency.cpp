#include "sim/serving/alone_latency.hpp"

#include <algorithm>

namespace dculab::sim {

AloneLatency::AloneLatency(const EngineParts& parts)
    : parts_(parts),
      stages_(static_cast<std::size_t>(parts.deployment.pipeline_parallel_size)),
      executor_(parts.machine, parts.model, parts.options, parts.deployment, clock_, stages_) {}

Seconds AloneLatency::latency(int prompt_tokens, int output_tokens) {
  Seconds total = prefill(prompt_tokens);
  if (output_tokens == 1) return total;
  if (parts_.deployment.is_disaggregated())
    total +=
        kv_sending_time(parts_.deployment, parts_.machine, parts_.model, parts_.options.kv_cache_dtype, prompt_tokens) +
        kv_latency(parts_.deployment, parts_.machine);
  const Seconds until_last = decodes(prompt_tokens + output_tokens - 1);
  return total + until_last - decodes(prompt_tokens);
}

Seconds AloneLatency::step(const SequenceSlice& slice) {
  std::ranges::fill(stages_, Seconds{});
  plan_.batch.sequences.assign(1, slice);
  plan_step_into(plan_, executor_.planned_model(), parts_.options);
  return executor_.run(plan_).duration;
}

Seconds AloneLatency::prefill(int prompt_tokens) {
  const int chunk = parts_.options.max_num_batched_tokens;
  const int before = (prompt_tokens - 1) / chunk;
  const auto slice = [chunk](int chunks_before, int tokens, int logits) {
    return SequenceSlice{.phase = Phase::prefill,
                         .num_computed_tokens = chunks_before * chunk,
                         .num_new_tokens = tokens,
                         .num_logits = logits};
  };
  while (static_cast<int>(whole_chunks_.size()) <= before)
    whole_chunks_.push_back(whole_chunks_.back() + step(slice(static_cast<int>(whole_chunks_.size()) - 1, chunk, 0)));
  const auto [last, is_new] = last_chunk_.try_emplace(prompt_tokens);
  if (is_new) last->second = step(slice(before, prompt_tokens - before * chunk, 1));
  return whole_chunks_[static_cast<std::size_t>(before)] + last->second;
}

Seconds AloneLatency::decodes(int context_tokens) {
  while (static_cast<int>(decodes_.size()) <= context_tokens)
    decodes_.push_back(decodes_.back() +
                       step({.phase = Phase::decode, .num_computed_tokens = static_cast<int>(decodes_.size()) - 1}));
  return decodes_[static_cast<std::size_t>(context_tokens)];
}

}  // namespace dculab::sim

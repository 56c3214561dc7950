#include "study/answer/batch_pricer.hpp"

#include <string>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] SequenceSlice slice_of(const SequenceTokens& tokens, const ModelShape& model) {
  if (tokens.new_tokens < 1 || tokens.cached_tokens < 0)
    throw InputError("a sequence of a step computes at least one token, after none or more; not " +
                     std::to_string(tokens.new_tokens) + " after " + std::to_string(tokens.cached_tokens));
  const std::int64_t context = std::int64_t{tokens.new_tokens} + tokens.cached_tokens;
  if (context > model.max_position_embeddings)
    throw InputError("context of " + std::to_string(context) + " tokens is longer than " + model.name +
                     " allows (max_position_embeddings = " + std::to_string(model.max_position_embeddings) + ")");
  SequenceSlice slice;
  slice.phase = tokens.new_tokens == 1 && tokens.cached_tokens > 0 ? Phase::decode : Phase::prefill;
  slice.num_computed_tokens = tokens.cached_tokens;
  slice.num_new_tokens = tokens.new_tokens;
  return slice;
}

}  // namespace

BatchPricer::BatchPricer(const config::Scenario& scenario) {
  refuse_unsupported(scenario);
  machine_ = resolve_machine(scenario, scenario.machines.front());
  model_ = resolve_part(scenario, resolve_model(scenario), machine_);
  options_ = resolve_options(scenario, model_, machine_);
}

Seconds BatchPricer::time(std::span<const SequenceTokens> sequences) {
  if (sequences.empty()) return {};
  Batch batch;
  for (const Phase phase : {Phase::prefill, Phase::decode})  // in a batch, prefills are first
    for (const SequenceTokens& tokens : sequences)
      if (const SequenceSlice slice = slice_of(tokens, model_); slice.phase == phase) {
        batch.sequences.push_back(slice);
        batch.sequences.back().id = static_cast<SequenceId>(batch.sequences.size() - 1);
      }
  return time_of(std::move(batch));
}

Seconds BatchPricer::time_of(Batch batch) {
  plan_ = plan_step(model_, options_, std::move(batch));
  sim::price_step(machine_, plan_, plan_.batch.cold_share, price_);
  return price_.seconds;
}

}  // namespace dculab::study

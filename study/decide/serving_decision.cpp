#include "study/decide/serving_decision.hpp"

#include <algorithm>

#include "sim/cost/step_price.hpp"
#include "study/decide/attention_difference.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] double step_seconds(const sim::ServingCase& serving, const sim::Setting& setting, int batch,
                                  int context) {
  return sim::decode_step(serving, setting, batch, context).price.seconds.value();
}

[[nodiscard]] int most_sequences(int batch) { return std::max(sim::kMostSequences, batch); }

[[nodiscard]] std::string bound_at(const sim::ServingCase& serving, const sim::Setting& setting, int batch,
                                   int context) {
  return sim::step_bound(sim::decode_step(serving, setting, batch, context).price, serving.machine);
}

}  // namespace

bool decide(const sim::ServingCase& serving, Decision& decision) {
  std::vector<double> rates;
  for (Candidate& candidate : decision.candidates) {
    candidate.served = sim::serve(serving, candidate.setting);
    rates.push_back(candidate.served.output_tokens_per_second);
  }
  const auto preferred = sim::prefer(rates, decision.tie);
  if (preferred) decision.preferred = *preferred;
  return preferred.has_value();
}

std::string why_none_serves(const Decision& decision) {
  bool too_slow = false;
  std::string dtypes;
  for (const Candidate& candidate : decision.candidates) {
    const std::string dtype(name(candidate.setting.kv_cache_dtype));
    too_slow = too_slow || candidate.served.limit == sim::SequenceLimit::tpot;
    if (dtypes.find(dtype) == std::string::npos) dtypes += (dtypes.empty() ? "" : " or ") + dtype;
  }
  return (too_slow ? "a single sequence already takes longer a token than slo.tpot"
                   : "not one sequence fits beside the weights") +
         (" with KV in " + dtypes);
}

bool step_prefers_choice(const sim::ServingCase& serving, const Decision& decision, int batch, int context) {
  const double choice = step_seconds(serving, decision.choice().setting, batch, context);
  const double other = step_seconds(serving, decision.runner_up()->setting, batch, context);
  const bool stands_first = decision.preferred.chosen < *decision.preferred.runner_up;
  return stands_first ? choice <= other * (1 + decision.tie) : other > choice * (1 + decision.tie);
}

void explain(const sim::ServingCase& serving, int batch, Decision& decision) {
  const Candidate* other = decision.runner_up();
  if (other == nullptr) return;
  const Candidate& choice = decision.choice();
  decision.margin = sim::margin(serving, choice.setting, choice.served.batch, other->setting, other->served.batch);
  decision.difference = attention_difference(sim::decode_step(serving, choice.setting, batch, serving.mean_context()),
                                             sim::decode_step(serving, other->setting, batch, serving.mean_context()));
  const int context = serving.mean_context();
  const bool here = step_prefers_choice(serving, decision, batch, context);
  decision.step_agrees = here;
  decision.by_batch = sim::nearest_flips(batch, 1, most_sequences(batch), [&](int at) {
    return step_prefers_choice(serving, decision, at, context) == here;
  });
  decision.by_context = sim::nearest_flips(context, 1, serving.model.max_position_embeddings, [&](int at) {
    return step_prefers_choice(serving, decision, batch, at) == here;
  });
}

StepBound bound_of(const sim::ServingCase& serving, const sim::Setting& setting, int batch) {
  const int context = serving.mean_context();
  const auto at_batch = [&](int at) { return bound_at(serving, setting, at, context); };
  const auto at_context = [&](int at) { return bound_at(serving, setting, batch, at); };
  StepBound bound;
  bound.name = at_batch(batch);
  bound.by_batch =
      sim::nearest_flips(batch, 1, most_sequences(batch), [&](int at) { return at_batch(at) == bound.name; });
  bound.by_context = sim::nearest_flips(context, 1, serving.model.max_position_embeddings,
                                        [&](int at) { return at_context(at) == bound.name; });
  if (bound.by_batch.below) bound.below_batch = at_batch(*bound.by_batch.below);
  if (bound.by_batch.above) bound.above_batch = at_batch(*bound.by_batch.above);
  if (bound.by_context.below) bound.below_context = at_context(*bound.by_context.below);
  if (bound.by_context.above) bound.above_context = at_context(*bound.by_context.above);
  return bound;
}

}  // namespace dculab::study

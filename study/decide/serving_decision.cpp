#include "study/decide/serving_decision.hpp"

#include <algorithm>

#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/serving/simulated_server.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/decide/drawn_requests.hpp"

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

// Shifts of a machine that was calibrated are those of its priors too: what held-out steps say is of the time of one
// step, not of the ratio of two.
[[nodiscard]] Evaluated evaluate(const sim::ServingCase& serving, const Candidate& candidate, int batch) {
  Evaluated result{.value = candidate.value, .figure = 0};
  if (candidate.served.batch == 0) return result;
  const auto rate = [&](const sim::Machine& machine) {
    return Seconds(sim::served_rate(machine, serving, candidate.setting, batch));
  };
  result.figure = rate(serving.machine).value();
  result.shifts = sim::prior_shifts(serving.machine, rate);
  return result;
}

// Output tokens per second over the draws, one after the other; nothing where a request does not fit.
[[nodiscard]] std::vector<double> served_rates(const sim::SimulatedServer& server,
                                               const std::vector<RequestWorkload>& draws) {
  std::vector<double> rates;
  try {
    for (const RequestWorkload& draw : draws) {
      const ServingMetrics metrics = sim::simulate(server, draw, {}).metrics;
      rates.push_back(static_cast<double>(metrics.output_tokens()) / metrics.duration().value());
    }
  } catch (const InputError&) {
    return {};
  }
  return rates;
}

}  // namespace

bool decide(const sim::ServingCase& serving, Decision& decision, std::optional<int> at_a_time) {
  for (Candidate& candidate : decision.candidates) {
    candidate.served = sim::serve(serving, candidate.setting);
    const int batch = at_a_time ? std::min(*at_a_time, candidate.served.most) : candidate.served.batch;
    decision.evaluated.push_back(evaluate(serving, candidate, batch));
  }
  const auto verdict = decide(decision.evaluated, decision.preference);
  if (verdict) decision.verdict = *verdict;
  return verdict.has_value();
}

void decide_by_requests(const sim::ServingCase& serving, const sim::Deployment& deployment, RequestWorkload workload,
                        int batch, Decision& decision) {
  workload.arrival = ArrivalKind::all_at_once;
  const std::vector<RequestWorkload> draws = draws_of(workload);
  std::vector<Evaluated> evaluated;
  for (std::size_t index = 0; index < decision.candidates.size(); ++index) {
    const Candidate& candidate = decision.candidates[index];
    EngineOptions options = sim::options_of(serving, candidate.setting);
    options.max_num_seqs = batch;
    const ModelShape model = with_kv_heads(serving.model, candidate.setting.kv_heads);
    evaluated.push_back(over_draws(
        candidate.value, candidate.served.batch == 0
                             ? std::vector<double>()
                             : served_rates({serving.machine, model, options, std::nullopt, deployment}, draws)));
    const std::vector<double>& of_priors = decision.evaluated[index].shifts;
    evaluated.back().shifts.insert(evaluated.back().shifts.begin(), of_priors.begin(), of_priors.end());
  }
  const auto verdict = decide(evaluated, {.resolution = kServedResolution, .given_up = decision.preference.given_up});
  if (!verdict) return;
  decision.preference.resolution = kServedResolution;
  decision.by_requests = true;
  decision.evaluated = std::move(evaluated);
  decision.verdict = *verdict;
}

std::string why_none_serves(const Decision& decision) {
  std::optional<Seconds> best;  // of one sequence that is too slow
  std::string dtypes;
  for (const Candidate& candidate : decision.candidates) {
    const std::string dtype(name(candidate.setting.kv_cache_dtype));
    const sim::Served& served = candidate.served;
    if (served.limit == sim::SequenceLimit::tpot && (!best || served.tpot < *best)) best = served.tpot;
    if (dtypes.find(dtype) == std::string::npos) dtypes += (dtypes.empty() ? "" : " or ") + dtype;
  }
  if (!best) return "not one sequence fits beside the weights with KV in " + dtypes;
  return "a single sequence already takes longer a token than slo.tpot, " + config::short_text(*best) +
         " at best, with KV in " + dtypes;
}

bool step_prefers_choice(const sim::ServingCase& serving, const Decision& decision, int batch, int context) {
  const double choice = step_seconds(serving, decision.choice().setting, batch, context);
  const double other = step_seconds(serving, decision.runner_up()->setting, batch, context);
  const bool stands_first = decision.verdict.chosen < *decision.verdict.runner_up;
  const double tie = std::max(decision.preference.resolution, decision.preference.given_up);
  return stands_first ? choice <= other * (1 + tie) : other > choice * (1 + tie);
}

void explain(const sim::ServingCase& serving, int batch, Decision& decision) {
  const Candidate* other = decision.runner_up();
  if (other == nullptr) return;
  const Candidate& choice = decision.choice();
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

// How many sequences run, and how many tokens each gets.
#include <algorithm>
#include <cmath>

#include "config/number_text.hpp"
#include "study/diagnose/candidate.hpp"

namespace dculab::study {
namespace {

// A step of `running` sequences, between those that were priced.
[[nodiscard]] Seconds step_of(const StepFacts& facts, double running) {
  const auto after = std::ranges::find_if(facts.fewer, [=](const auto& each) { return each.first >= running; });
  if (after == facts.fewer.end()) return facts.predicted;
  if (after == facts.fewer.begin()) return after->second;
  const auto before = std::prev(after);
  const double share = (running - before->first) / (after->first - before->first);
  return (1 - share) * before->second + share * after->second;
}

// `amount` + 1 turns in place of one: the batch's tokens take as many steps of as many fewer sequences.
void add_fewer_sequences(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  const bool is_rate = std::ranges::all_of(
      evidence.steps, [](const StepFacts& facts) { return facts.asked.is_rate && facts.asked.batch > 1; });
  if (!is_rate || !evidence.is_decode()) return;
  const StepFacts& any = evidence.any();
  const bool fits = any.prediction.capacity.max_sequences >= static_cast<std::int64_t>(any.asked.batch);
  found.push_back({.cause = Cause::fewer_sequences,
                   .least = kLeastSlowdown,
                   .most = static_cast<double>(any.asked.batch) - 1,
                   .odds = fits ? kOrdinary : kStated,
                   .because = fits ? ""
                                   : "only " + std::to_string(any.prediction.capacity.max_sequences) +
                                         " sequences of this length fit in memory",
                   .extra =
                       [](const StepFacts& facts, double amount) {
                         const double running = std::max(1.0, facts.asked.batch / (1 + amount));
                         return std::max(Seconds{}, (1 + amount) * step_of(facts, running) - facts.predicted);
                       },
                   .figure =
                       [](const StepFacts& facts, double amount) {
                         return config::number(std::max(1.0, facts.asked.batch / (1 + amount)), 2) + " of " +
                                std::to_string(facts.asked.batch) + " sequences at a time";
                       }});
}

// Prompts take at most all of the time.
void add_prefills(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  constexpr double kKnownTo = 2;
  if (!evidence.is_decode() || !std::ranges::all_of(evidence.steps, &StepFacts::has_prefills)) return;
  found.push_back(
      {.cause = Cause::prefills_in_steps,
       .least = 1 / kKnownTo,
       .most = kKnownTo,
       .odds = kStated,
       .because = "steps of decode alone were not timed",
       .extra = [](const StepFacts& facts,
                   double amount) { return std::min(1.0, amount * facts.prefill_share()) * facts.measured; },
       .figure =
           [](const StepFacts& facts, double amount) {
             return "prompts take " + config::percent(std::min(1.0, amount * facts.prefill_share()), 2) +
                    " of the time, predicted " + config::percent(std::min(1.0, facts.prefill_share()), 2);
           }});
}

void add_rejected(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  const double tokens = evidence.any().tokens;
  if (tokens <= 1) return;
  found.push_back({.cause = Cause::drafts_rejected,
                   .least = kLeastSlowdown / 2,
                   .most = tokens - 1,
                   .extra = [](const StepFacts& facts, double amount) { return slowed(facts.predicted, amount); },
                   .figure =
                       [tokens](const StepFacts&, double amount) {
                         return config::number(tokens / (1 + amount), 3) + " tokens a step, predicted with " +
                                config::number(tokens, 3);
                       }});
}

}  // namespace

void add_serving_candidates(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  add_fewer_sequences(evidence, found);
  add_prefills(evidence, found);
  add_rejected(evidence, found);
}

}  // namespace dculab::study

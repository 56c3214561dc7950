#include "study/diagnose/diagnosis.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "config/number_text.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "model/folder/model_config.hpp"
#include "study/diagnose/candidate.hpp"
#include "study/diagnose/context_line.hpp"
#include "study/diagnose/contradictions.hpp"
#include "study/diagnose/likelihood.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

// Where words for shares and probabilities begin: conventions, explained in diagnosis.hpp.
constexpr double kLikely = 0.5, kPossible = 0.05;
constexpr double kNegligible = 0.1;      // of the gap
constexpr double kContradicted = 0.005;  // probability
constexpr double kFits = 0.15;           // of the logarithm of a time
constexpr double kFarthestAmount = 1e9;  // times the most, that a needed amount is looked for

// Of a prediction with drafting as of the step alone.
[[nodiscard]] double scale_of(const StepFacts& facts) { return facts.predicted / facts.prediction.price.seconds; }
[[nodiscard]] Seconds low_of(const StepFacts& facts) { return scale_of(facts) * facts.prediction.confidence.low; }
[[nodiscard]] Seconds high_of(const StepFacts& facts) { return scale_of(facts) * facts.prediction.confidence.high; }

[[nodiscard]] std::string place_of(const MeasuredStep& step) {
  return std::string(step.phase == Phase::decode ? "decode" : "prefill") + ", batch " + std::to_string(step.batch) +
         ", context " + std::to_string(step.context);
}

// What physics forbids was measured or described wrongly.
void refuse_impossible(const StepFacts& facts) {
  if (facts.measured >= facts.floor) return;
  const bool is_decode = facts.asked.phase == Phase::decode;
  throw InputError(
      place_of(facts.asked),
      "a step of " + config::short_text(facts.measured) + " cannot be: " + facts.machine().name + " needs at least " +
          config::short_text(facts.floor) +
          " for the step's weights, KV and FLOP at its peaks; check the weights' "
          "format, the number of devices (--tensor-parallel-size), " +
          (is_decode ? "the batch (tokens/s are those of all its sequences, TPOT is one's) and speculative decoding"
                     : "the length of the prompt, and whether a cached prefix was counted"));
}

[[nodiscard]] std::size_t reference_of(std::span<const StepFacts> steps) {
  const auto comes_before = [](const StepFacts& one, const StepFacts& other) {
    const Pace pace = pace_of(one), other_pace = pace_of(other);
    if (pace != other_pace) return pace < other_pace;
    return pace == Pace::faster ? one.gap() > other.gap() : one.gap() < other.gap();
  };
  return static_cast<std::size_t>(std::ranges::max_element(steps, comes_before) - steps.begin());
}

// Weights of floating point have no groups that could be out of order, and one device sorts its weights by group.
void refuse_idle_act_order(const StepFacts& facts) {
  const Dtype dtype = facts.prediction.options.weights.dtype;
  if (is_integer(dtype) && facts.prediction.model.tensor_parallel_size > 1) return;
  if (is_integer(dtype))
    throw InputError("--desc-act", "changes nothing on one device; leave it out, or give --tensor-parallel-size");
  throw InputError("--desc-act", "is of GPTQ checkpoints, but the weights of " + facts.prediction.whole.name + " are " +
                                     std::string(name(dtype)) + "; leave it out, or give --weights gptq-int4");
}

// Of GPTQ checkpoints, where the question does not say.
void read_act_order(DiagnosisQuestion& question) {
  if (!question.desc_act.empty()) return;
  const auto folder = try_find_model(question.step.model);
  if (!folder || !std::filesystem::exists(*folder / "config.json")) return;
  try {
    const auto quantization = read_quantization_config(*folder);
    if (quantization) question.desc_act = quantization->desc_act ? "yes" : "no";
  } catch (const InputError&) {  // of another method, which has no act-order
  }
}

// The amount with which the candidate alone is the gap; nothing where none is.
[[nodiscard]] std::optional<double> needed_amount(const CauseCandidate& candidate, const StepFacts& facts) {
  double low = 0, high = candidate.most;
  while (candidate.extra(facts, high) < facts.gap()) {
    low = high;
    high *= 2;
    if (high > kFarthestAmount * candidate.most) return std::nullopt;
  }
  for (int round = 0; round < 60; ++round) {
    const double middle = (low + high) / 2;
    (candidate.extra(facts, middle) < facts.gap() ? low : high) = middle;
  }
  return high;
}

[[nodiscard]] std::string evidence_of(const CauseCandidate& candidate, const Weighed& weighed, const Explanation& found,
                                      const Diagnosis& diagnosis) {
  const std::string because = candidate.because.empty() ? "" : "; " + candidate.because;
  const StepFacts& facts = diagnosis.at();
  if (found.most < facts.gap()) {
    const bool is_close = weighed.share >= kPossible && found.most > facts.gap() * (low_of(facts) / high_of(facts));
    return "adds at most " + config::short_text(facts.rounded(found.most)) + " of " + config::short_text(facts.gap()) +
           (is_close ? ", at its limit (" + found.limit + "); the prediction's interval leaves the rest open" : "") +
           because;
  }
  const std::string alone = "alone: " + found.needed;
  if (diagnosis.steps.size() == 1) return alone + because;
  if (weighed.misfit <= kFits)
    return alone + "; fits all " + std::to_string(diagnosis.steps.size()) + " steps within " +
           config::percent(std::expm1(weighed.misfit), 2) + because;
  return "alone it misses a step by a factor of " + config::number(std::exp(weighed.misfit), 2) +
         ": it does not grow with context and batch as the steps do" + because;
}

[[nodiscard]] CauseVerdict verdict_of(const Weighed& weighed, Seconds most, Seconds gap) {
  if (weighed.share >= kLikely) return CauseVerdict::likely;
  if (most < kNegligible * gap || weighed.probability < kContradicted) return CauseVerdict::excluded;
  return weighed.share >= kPossible ? CauseVerdict::possible : CauseVerdict::unlikely;
}

[[nodiscard]] Explanation explanation_of(const CauseCandidate& candidate, const Weighed& weighed,
                                         const Diagnosis& diagnosis) {
  const StepFacts& facts = diagnosis.at();
  Explanation found;
  found.cause = candidate.cause;
  found.share = weighed.share;
  found.explains = weighed.share * facts.gap();
  found.most = candidate.extra(facts, candidate.most);
  found.verdict = verdict_of(weighed, found.most, facts.gap());
  const auto amount = needed_amount(candidate, facts);
  found.needed = amount ? candidate.figure(facts, *amount) : "";
  found.limit = candidate.figure(facts, candidate.most);
  found.evidence = evidence_of(candidate, weighed, found, diagnosis);
  found.what_to_try = what_to_try(candidate.cause, facts);
  return found;
}

struct Leading {
  const CauseCandidate* candidate = nullptr;
  double amount = 0;
};

// Where the two causes say the most different things, of a longer context and of a larger batch.
[[nodiscard]] std::optional<NextMeasurement> next_measurement(const DiagnosisQuestion& question,
                                                              const Diagnosis& diagnosis, Leading first,
                                                              Leading second) {
  constexpr int kLonger = 4, kLarger = 8;
  constexpr double kTellsApart = 0.25;  // of the logarithm of a time
  const MeasuredStep& asked = diagnosis.at().asked;
  if (asked.phase == Phase::prefill) return std::nullopt;
  std::optional<NextMeasurement> best;
  double most = kTellsApart;
  for (const auto& [batch, context] :
       {std::pair(asked.batch, kLonger * asked.context), std::pair(kLarger * asked.batch, asked.context)}) {
    if (batch > kLargestBatch || context > diagnosis.at().prediction.whole.max_position_embeddings) continue;
    const StepFacts facts = step_facts(question, batch, context);
    const auto with = [&facts](const Leading& leading) {
      return (facts.predicted + leading.candidate->extra(facts, leading.amount)) * (1 / facts.tokens);
    };
    const double apart = std::abs(std::log(with(first) / with(second)));
    if (apart <= most) continue;
    most = apart;
    best = NextMeasurement{.batch = batch,
                           .context = context,
                           .first = first.candidate->cause,
                           .second = second.candidate->cause,
                           .with_first = with(first),
                           .with_second = with(second)};
  }
  return best;
}

void explain(const DiagnosisQuestion& question, Diagnosis& diagnosis) {
  const std::vector<CauseCandidate> asked = cause_candidates({question, diagnosis.steps});
  const StepFacts& facts = diagnosis.at();
  const double log_sigma = std::log(high_of(facts) / low_of(facts)) / 2 / sim::kNormalQuantile95;
  const Weighing weighing = weigh(diagnosis.steps, asked, diagnosis.reference, log_sigma);
  diagnosis.unknown = weighing.unknown;
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < asked.size(); ++index) order.push_back(index);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t index) { return weighing.candidates[index].share; });
  for (const std::size_t index : order)
    diagnosis.explanations.push_back(explanation_of(asked[index], weighing.candidates[index], diagnosis));
  const auto leading = [&](std::size_t place) {
    return Leading{&asked[order[place]], weighing.candidates[order[place]].amount};
  };
  if (order.size() >= 2 && diagnosis.explanations[1].verdict <= CauseVerdict::possible)
    diagnosis.next = next_measurement(question, diagnosis, leading(0), leading(1));
}

[[nodiscard]] std::optional<ClientView> client_view(const StepFacts& facts) {
  const auto& served = facts.asked.served;
  if (!served) return std::nullopt;
  ClientView view{.tpot = served->tpot,
                  .predicted_prefill_share = facts.prefill_share(),
                  .ttft = served->ttft,
                  .prefill = facts.prefill};
  if (served->times_steps && !facts.has_prefills())
    view.prefill_share = std::max(0.0, 1 - facts.asked.time / served->tpot);
  return view;
}

}  // namespace

std::string_view name(Pace pace) {
  constexpr std::array<std::string_view, 3> kNames{"as_predicted", "faster", "slower"};
  return kNames[static_cast<std::size_t>(pace)];
}

std::string_view name(CauseVerdict verdict) {
  constexpr std::array<std::string_view, 4> kNames{"likely", "possible", "unlikely", "excluded"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Pace pace_of(const StepFacts& facts) {
  if (facts.measured > high_of(facts)) return Pace::slower;
  return facts.measured < low_of(facts) ? Pace::faster : Pace::as_predicted;
}

Diagnosis diagnose(DiagnosisQuestion question) {
  Measurements measured = measured_steps(question);
  const bool states_act_order = !question.desc_act.empty();
  read_act_order(question);
  Diagnosis diagnosis;
  for (const MeasuredStep& step : measured.steps) {
    diagnosis.steps.push_back(step_facts(question, step));
    refuse_impossible(diagnosis.steps.back());
  }
  if (states_act_order) refuse_idle_act_order(diagnosis.steps.front());
  diagnosis.warnings = std::move(measured.warnings);
  for (const StepFacts& facts : diagnosis.steps)
    if (facts.has_prefills() && facts.asked.served->times_steps)
      diagnosis.warnings.push_back(
          facts.asked.source +
          ": its median ITL is hardly less than its TPOT though prompts take a good part of the "
          "time: it is no step of decode alone");
  for (std::string& warning : falling_times(diagnosis.steps)) diagnosis.warnings.push_back(std::move(warning));
  diagnosis.reference = reference_of(diagnosis.steps);
  diagnosis.pace = pace_of(diagnosis.at());
  diagnosis.over_context = context_line(diagnosis.steps);
  diagnosis.client = client_view(diagnosis.at());
  if (diagnosis.pace == Pace::slower) explain(question, diagnosis);
  return diagnosis;
}

}  // namespace dculab::study

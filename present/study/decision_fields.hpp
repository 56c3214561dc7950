// The fields of one decision of `dculab recommend`, and of what follows from measured steps.
#pragma once

#include <algorithm>
#include <string_view>
#include <tuple>

#include "fields/field_list.hpp"
#include "present/values/verdict_text.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/study/recommend.hpp"
#include "study/decide/batched_tokens.hpp"
#include "study/decide/serving_decision.hpp"

namespace dculab::present {

// Where another answer holds, by batch and by context.
struct ReportedFlips {
  sim::Flips by_batch, by_context;
};

// The runner-up of a decision that has one.
struct ReportedRunnerUp {
  const study::Decision& decision;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedFlips> {
  using Flips = present::ReportedFlips;
  static constexpr std::string_view id = "flips";
  static constexpr std::string_view doc = "The nearest batch and context at which it is no longer so; null: none is.";
  static constexpr auto fields = std::tuple(
      field("batch_below", "smaller", unit::count, [](const Flips& flips) { return or_null(flips.by_batch.below); }),
      field("batch_above", "larger", unit::count, [](const Flips& flips) { return or_null(flips.by_batch.above); }),
      field("context_below", "shorter", unit::tokens,
            [](const Flips& flips) { return or_null(flips.by_context.below); }),
      field("context_above", "longer", unit::tokens,
            [](const Flips& flips) { return or_null(flips.by_context.above); }));
};

template <>
struct FieldList<study::Candidate> {
  using Candidate = study::Candidate;
  static constexpr std::string_view id = "candidate";
  static constexpr std::string_view doc = "A value, and what is served with it at its best batch.";
  static constexpr auto fields = std::tuple(
      field("value", "the value", &Candidate::value),
      field("max_num_seqs", "sequences at a time; 0: the load cannot be served", unit::count,
            [](const Candidate& each) { return each.served.batch; }),
      field("limit", "what keeps it from being larger", names_up_to<sim::SequenceLimit::most>(),
            [](const Candidate& each) { return sim::name(each.served.limit); }),
      field("output_tokens_per_second", "in closed form", unit::tokens_per_second,
            [](const Candidate& each) { return each.served.output_tokens_per_second; }),
      field("tpot_seconds", "time per output token", [](const Candidate& each) { return each.served.tpot; }));
};

template <>
struct FieldList<present::ReportedRunnerUp> {
  using Self = present::ReportedRunnerUp;
  static constexpr std::string_view id = "runner_up";
  static constexpr std::string_view doc = "The best other value of a decision.";
  static constexpr auto fields =
      std::tuple(field("runner_up", "the best other value",
                       [](const Self& reported) { return reported.decision.runner_up()->value; }),
                 field("margin", "by how much it serves more than the choice", unit::share,
                       [](const Self& reported) { return reported.decision.margin().value; }),
                 field("margin_interval", "90 %", unit::share,
                       [](const Self& reported) {
                         const study::Cost margin = reported.decision.margin();
                         return interval(margin.low, margin.high);
                       }),
                 field("margin_basis", "what the interval rests on; that of a calibrated machine too",
                       names_up_to<sim::Basis::priors>(), [](const Self&) { return sim::name(sim::Basis::priors); }),
                 field("difference", "of its attention: what it has more or less of",
                       [](const Self& reported) { return reported.decision.difference; }),
                 field("step_agrees", "a decode step alone decides as the whole load does",
                       [](const Self& reported) { return reported.decision.step_agrees; }),
                 field("flips", "where a decode step alone decides otherwise", [](const Self& reported) {
                   return present::ReportedFlips{reported.decision.by_batch, reported.decision.by_context};
                 }));
};

template <>
struct FieldList<study::Decision> {
  using Decision = study::Decision;
  static constexpr std::string_view id = "decision";
  static constexpr std::string_view doc = "One setting: which value to take, and what the others cost.";
  static constexpr auto fields = std::tuple(
      inlined([](const Decision& each) { return present::reported_costs(each.evaluated, each.verdict); }),
      field("key", "of a scenario file: kv_cache.block_size", &Decision::key),
      field("tie", "cost up to which a value that is preferred is taken", unit::share,
            [](const Decision& each) { return std::max(each.preference.resolution, each.preference.given_up); }),
      field("by", "what the values were compared by", one_of("served requests", "closed form"),
            [](const Decision& each) { return each.by_requests ? "served requests" : "closed form"; }),
      field("candidates", "the preferred first", &Decision::candidates), inlined([](const Decision& each) {
        return when(each.runner_up() != nullptr, [&each] { return present::ReportedRunnerUp{each}; });
      }));
};

template <>
struct FieldList<study::BatchedTokens> {
  using Tokens = study::BatchedTokens;
  static constexpr std::string_view id = "batched_tokens";
  static constexpr std::string_view doc = "A max_num_batched_tokens, with requests simulated.";
  static constexpr auto fields = std::tuple(
      field("value", "tokens of a step, at most", unit::tokens, &Tokens::max_num_batched_tokens),
      field("goodput", "requests that meet the slo; without one all", unit::requests_per_second, &Tokens::goodput),
      field("slo_attainment", "of the requests, that meet the slo", unit::share, &Tokens::slo_attainment),
      field("ttft_p90", "time to first token, 90th percentile", &Tokens::ttft_p90),
      field("tpot_p90", "time per output token, 90th percentile", &Tokens::tpot_p90),
      field("latency_mean", "of a request", &Tokens::latency_mean),
      field("preemptions", "of running requests", unit::count, &Tokens::preemptions),
      field("prompt_token_seconds", "of one token, in a step of nothing but prompts", &Tokens::prompt_token),
      field("most_requests_per_second", "while the queue never empties", unit::requests_per_second,
            &Tokens::full_requests_per_second),
      field("most_tpot_p50_seconds", "then, of the median request", &Tokens::full_tpot));
};

template <>
struct FieldList<study::BatchedTokensChoice> {
  using Choice = study::BatchedTokensChoice;
  static constexpr std::string_view id = "batched_tokens_choice";
  static constexpr std::string_view doc = "Which max_num_batched_tokens to take, and what the others cost.";
  static constexpr auto fields =
      std::tuple(inlined([](const Choice& each) { return present::reported_costs(each.evaluated, each.verdict); }),
                 field("key", "of a scenario file", [](const Choice&) { return "engine.max_num_batched_tokens"; }),
                 field("choice", "the value to take", unit::tokens,
                       [](const Choice& each) { return each.candidates[each.verdict.chosen].max_num_batched_tokens; }),
                 field("by", "what the values were compared by", one_of("goodput", "latency_mean"),
                       [](const Choice& each) { return each.by_goodput ? "goodput" : "latency_mean"; }),
                 field("candidates", "the usual one first", &Choice::candidates));
};

template <>
struct FieldList<sim::Regret> {
  static constexpr std::string_view id = "regret";
  static constexpr std::string_view doc = "What it costs to follow the predictions, over steps that were measured.";
  static constexpr auto fields =
      std::tuple(field("regret", "measured time of what is predicted best over that of the best, minus 1", unit::share,
                       &sim::Regret::regret),
                 field("worst_single", "the largest when each workload is decided on its own", unit::share,
                       &sim::Regret::worst_single));
};

}  // namespace dculab

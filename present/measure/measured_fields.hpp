// The fields of what was run on this machine, beside what was predicted of it: bodies of `dculab study --measure`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "present/output/field_json.hpp"
#include "present/study/score_fields.hpp"
#include "present/study/speculation_fields.hpp"
#include "present/values/machine_figures.hpp"
#include "study/calibrate/refused_steps.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/measure/measured_study.hpp"

namespace dculab::present {

// Of this machine alone.
[[nodiscard]] inline ByMachine<MachineFacts> facts_by_name(const sim::Machine& machine) {
  return {{machine.name, machine_facts(machine)}};
}

// Errors of held-out steps, and the measurement's own spread.
struct SweepSummary {
  const study::MeasuredSweep& sweep;
};

struct MeasuredRegret {
  const sim::Regret& regret;
};

struct ReportedSpeedUp {
  const study::MeasuredSpeedUp& speed_up;
  std::string variant;
  std::vector<config::Override> choices;
};

struct ReportedSpeedUps {
  const study::MeasuredComparison& found;
  const std::vector<config::SweepPoint>& sweep;
  const config::Compare& compare;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<study::ExchangeTimes> {
  static constexpr std::string_view id = "exchange_times";
  static constexpr std::string_view doc = "What the processes of a step spend on exchanging results.";
  static constexpr auto fields = std::tuple(field("predicted", "in all", &study::ExchangeTimes::predicted),
                                            field("measured", "in all", &study::ExchangeTimes::measured));
};

template <>
struct FieldList<study::HeldOutStep> {
  using Step = study::HeldOutStep;
  static constexpr std::string_view id = "held_out_step";
  static constexpr std::string_view doc = "A step that the fit had not seen.";
  static constexpr auto fields = std::tuple(
      field("id", "of the step", [](const Step& step) { return study::point_label(*step.point); }),
      field("predicted_seconds", "by the fit", &Step::predicted),
      field("measured_seconds", "median of the repeats", [](const Step& step) { return step.measured->duration; }),
      field("interval_seconds", "of the prediction, 90 %",
            [](const Step& step) { return interval(step.trust.low, step.trust.high); }),
      field("spread_seconds", "half the interquartile range of the repeats",
            [](const Step& step) { return step.measured->spread; }),
      field("basis", "what the interval rests on", names_up_to<sim::Basis::priors>(),
            [](const Step& step) { return sim::name(step.trust.basis); }),
      field("bound", "what limits most of the step", &Step::bound),
      field("exchange_seconds", "of several processes", &Step::exchanges));
};

template <>
struct FieldList<present::SweepSummary> {
  using Summary = present::SweepSummary;
  static constexpr std::string_view id = "sweep_summary";
  static constexpr std::string_view doc = "Errors of the held-out steps.";
  static constexpr auto fields =
      std::tuple(inlined([](const Summary& summary) { return summary.sweep.score.error; }),
                 field("covered_by_interval", "of the measurements", unit::share,
                       [](const Summary& summary) { return summary.sweep.score.covered; }),
                 field("median_spread", "of repeated measurements of a step, over its duration", unit::share,
                       [](const Summary& summary) { return summary.sweep.spread.median; }),
                 field("p90_spread", "90th percentile of the same", unit::share,
                       [](const Summary& summary) { return summary.sweep.spread.p90; }));
};

template <>
struct FieldList<present::MeasuredRegret> {
  using Self = present::MeasuredRegret;
  static constexpr std::string_view id = "measured_regret";
  static constexpr std::string_view doc = "What it costs to follow the predictions.";

  [[nodiscard]] static std::string text(sim::Choice choice) {
    return study::heads_text(choice.kv_heads) + ", block " + std::to_string(choice.block_size);
  }

  static constexpr auto fields =
      std::tuple(field("predicted_best", "KV heads and block size",
                       [](const Self& reported) { return text(reported.regret.predicted_best); }),
                 field("measured_best", "KV heads and block size",
                       [](const Self& reported) { return text(reported.regret.measured_best); }),
                 field("regret", "measured time of the first over that of the second, minus 1", unit::share,
                       [](const Self& reported) { return reported.regret.regret; }),
                 field("worst_single_workload", "the largest when each workload is decided on its own", unit::share,
                       [](const Self& reported) { return reported.regret.worst_single; }));
};

template <>
struct FieldList<study::ExchangeErrors> {
  using Errors = study::ExchangeErrors;
  static constexpr std::string_view id = "exchange_errors";
  static constexpr std::string_view doc = "Errors of the exchanges of held-out steps.";
  static constexpr auto fields =
      std::tuple(field("count", "steps", unit::count, &Errors::count),
                 field("median_abs_error", "median |error|", unit::share, &Errors::median),
                 field("p90_abs_error", "90th percentile of |error|", unit::share, &Errors::p90));
};

template <>
struct FieldList<study::MeasuredSweep> {
  using Sweep = study::MeasuredSweep;
  static constexpr std::string_view id = "measured_sweep";
  static constexpr std::string_view doc = "A sweep of steps, measured: one part calibrates, the other is scored.";
  static constexpr std::string_view csv_rows = "points";
  static constexpr auto fields =
      std::tuple(field("refused", "steps that cannot be true, and why",
                       [](const Sweep& sweep) { return study::refusal_lines(sweep.refused, sweep.trace); }),
                 field("points", "the held-out steps", &Sweep::held_out),
                 field("summary", "their errors", [](const Sweep& sweep) { return present::SweepSummary{sweep}; }),
                 field("regret", "where several choices were measured",
                       [](const Sweep& sweep) {
                         return when(sweep.regret.has_value(), [&] { return present::MeasuredRegret{*sweep.regret}; });
                       }),
                 field("exchange_error", "of several processes", &Sweep::exchange_errors),
                 field("machine_facts", "figures of this machine, calibrated, by its name",
                       [](const Sweep& sweep) { return present::facts_by_name(sweep.score.fit.machine); }));
};

template <>
struct FieldList<present::ReportedSpeedUp> {
  using Self = present::ReportedSpeedUp;
  static constexpr std::string_view id = "measured_speed_up";
  static constexpr std::string_view doc = "How many times as fast as the baseline a variant is.";
  static constexpr auto fields = std::tuple(
      field("variant", "its name", &Self::variant),
      field("choices", "keys of the scenario and their values", &Self::choices),
      field("measured_seconds", "of the variant's step", [](const Self& reported) { return reported.speed_up.step; }),
      field("predicted_speed_up", "by a fit to the baseline alone", unit::ratio,
            [](const Self& reported) { return reported.speed_up.predicted; }),
      field("measured_speed_up", "on this machine", unit::ratio,
            [](const Self& reported) { return reported.speed_up.measured; }),
      field("measured_speed_up_range", "of single rounds", unit::ratio,
            [](const Self& reported) { return interval(reported.speed_up.lowest, reported.speed_up.highest); }));
};

template <>
struct FieldList<present::ReportedSpeedUps> {
  using Self = present::ReportedSpeedUps;
  static constexpr std::string_view id = "measured_comparison";
  static constexpr std::string_view doc = "Variants, measured beside their baseline.";
  static constexpr std::string_view csv_rows = "speed_ups";

  [[nodiscard]] static std::vector<present::ReportedSpeedUp> speed_ups(const Self& reported) {
    std::vector<present::ReportedSpeedUp> speed_ups;
    for (const study::MeasuredSpeedUp& each : reported.found.speed_ups)
      speed_ups.push_back({each, reported.compare.variants[each.variant].name, reported.sweep[each.point].choices});
    return speed_ups;
  }

  static constexpr auto fields =
      std::tuple(field("speed_ups", "of each variant at each point", &speed_ups),
                 field("machine_facts", "figures of this machine, calibrated, by its name",
                       [](const Self& reported) { return present::facts_by_name(reported.found.machine); }));
};

template <>
struct FieldList<engine::MeasuredDraft> {
  using Draft = engine::MeasuredDraft;
  static constexpr std::string_view id = "measured_draft";
  static constexpr std::string_view doc = "Decodes with drafts and without, on this machine.";
  static constexpr auto fields =
      std::tuple(field("plain_seconds", "a step without drafts", &Draft::plain),
                 field("verify_seconds", "a step that verifies them", &Draft::verify),
                 field("drafting_seconds", "before that step", &Draft::drafting),
                 field("tokens", "of a sequence and step", unit::tokens, &Draft::tokens),
                 field("speed_up", "of decodes", unit::ratio, &Draft::speed_up),
                 field("spread", "of it, half the interquartile range of the rounds", unit::ratio, &Draft::spread));
};

template <>
struct FieldList<study::ComparedDraft> {
  using Draft = study::ComparedDraft;
  static constexpr std::string_view id = "compared_draft";
  static constexpr std::string_view doc = "What drafts are worth, predicted and measured.";
  static constexpr auto fields = std::tuple(field("choices", "keys of the scenario and their values", &Draft::choices),
                                            field("predicted", "from steps without drafts", &Draft::predicted),
                                            field("measured", "on this machine", &Draft::measured));
};

template <>
struct FieldList<study::DraftErrors> {
  using Errors = study::DraftErrors;
  static constexpr std::string_view id = "draft_errors";
  static constexpr std::string_view doc = "Errors of predicted speed-ups: predicted / measured - 1.";
  static constexpr auto fields =
      std::tuple(field("count", "points", unit::count, &Errors::count),
                 field("median_abs_error", "median |error|", unit::share, &Errors::median),
                 field("largest_abs_error", "largest |error|", unit::share, &Errors::largest),
                 field("within_10", "points within 10 %", unit::count, &Errors::within_10));
};

template <>
struct FieldList<study::MeasuredDrafts> {
  using Drafts = study::MeasuredDrafts;
  static constexpr std::string_view id = "measured_drafts";
  static constexpr std::string_view doc = "Drafts, measured: steps without drafts calibrate.";
  static constexpr std::string_view csv_rows = "points";
  static constexpr auto fields = std::tuple(
      field("refused", "steps without drafts that cannot be true, and why",
            [](const Drafts& drafts) { return study::refusal_lines(drafts.refused, drafts.plain); }),
      field("points", "of the sweep", &Drafts::points),
      field("summary", "errors of the speed-ups", [](const Drafts& drafts) { return study::errors_of(drafts.points); }),
      field("machine_facts", "figures of this machine, calibrated, by its name",
            [](const Drafts& drafts) { return present::facts_by_name(drafts.machine); }));
};

}  // namespace dculab

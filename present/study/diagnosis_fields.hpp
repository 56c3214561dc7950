// The fields of what `dculab diagnose` answers.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "fields/field_list.hpp"
#include "present/values/op_report.hpp"
#include "study/diagnose/diagnosis.hpp"

namespace dculab::present {

// An op of the explained step, beside what physics allows.
struct ReportedFloor {
  std::string op;
  int count = 1;
  Seconds floor, predicted;
  std::string bound;
};
[[nodiscard]] std::vector<ReportedFloor> reported_floors(const study::StepFacts& facts);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedFloor> {
  using Self = present::ReportedFloor;
  static constexpr std::string_view id = "op_floor";
  static constexpr std::string_view doc = "An op of the explained step: all its executions, on one device.";
  static constexpr auto fields = std::tuple(
      field("op", "its name", &Self::op), field("count", "executions in the step", unit::count, &Self::count),
      field("floor_seconds", "what physics allows: bytes and FLOP at the peaks", &Self::floor),
      field("seconds", "predicted", &Self::predicted),
      field("bound", "what limits the prediction, as in `predict`", &Self::bound));
};

template <>
struct FieldList<study::StepFacts> {
  using Self = study::StepFacts;
  static constexpr std::string_view id = "diagnosed_step";
  static constexpr std::string_view doc = "A step: what physics allows, what is predicted, what was measured.";
  static constexpr auto fields = std::tuple(
      field("phase", "what it does", one_of("prefill", "decode"),
            [](const Self& step) { return step.asked.phase == Phase::decode ? "decode" : "prefill"; }),
      field("batch", "sequences", unit::count, [](const Self& step) { return step.asked.batch; }),
      field("context_tokens", "of each sequence", unit::tokens, [](const Self& step) { return step.asked.context; }),
      field("tokens", "of a sequence and step: more than 1 where drafts are verified", unit::tokens, &Self::tokens),
      field("floor_seconds", "what physics allows", &Self::floor), field("step_seconds", "predicted", &Self::predicted),
      field("interval_seconds", "90 %",
            [](const Self& step) {
              const double scale = step.predicted / step.prediction.price.seconds;
              return interval(scale * step.prediction.confidence.low, scale * step.prediction.confidence.high);
            }),
      field("measured_seconds", "the step, of its measured rate or TPOT", &Self::measured),
      field("slower", "measured over predicted", unit::ratio,
            [](const Self& step) { return step.measured / step.predicted; }),
      field("pace", "as_predicted: it is in its interval", names_up_to<study::Pace::slower>(),
            [](const Self& step) { return study::name(study::pace_of(step)); }));
};

template <>
struct FieldList<study::ContextLine> {
  using Self = study::ContextLine;
  static constexpr std::string_view id = "context_line";
  static constexpr std::string_view doc = "TPOT = constant + per token * context, through steps of one batch.";
  static constexpr auto fields = std::tuple(
      field("batch", "sequences", unit::count, &Self::batch), field("constant_seconds", "measured", &Self::constant),
      field("per_token_seconds", "measured", &Self::per_token),
      field("predicted_constant_seconds", "predicted", &Self::predicted_constant),
      field("predicted_per_token_seconds", "predicted", &Self::predicted_per_token),
      field("kv_bytes_per_second", "at which KV is read if the measured slope is that alone", &Self::kv_bandwidth));
};

template <>
struct FieldList<study::Explanation> {
  using Self = study::Explanation;
  static constexpr std::string_view id = "explanation";
  static constexpr std::string_view doc = "A cause that was held against the measurement.";
  static constexpr auto fields = std::tuple(
      field("cause", "its name", [](const Self& each) { return study::name(each.cause); }),
      field("meaning", "what it is", [](const Self& each) { return study::meaning(each.cause); }),
      field("verdict", "what the evidence says of it", names_up_to<study::CauseVerdict::excluded>(),
            [](const Self& each) { return study::name(each.verdict); }),
      field("share", "of the gap, that the evidence puts there", unit::share, &Self::share),
      field("explains_seconds", "share of the gap", &Self::explains),
      field("most_seconds", "that it can add to the step", &Self::most),
      field("needed", "a figure to check, if it alone were the gap; empty where it cannot be", &Self::needed),
      field("limit", "the same at most", &Self::limit), field("evidence", "why it is ranked so", &Self::evidence),
      field("what_to_try", "what confirms or removes it", &Self::what_to_try));
};

template <>
struct FieldList<study::NextMeasurement> {
  using Self = study::NextMeasurement;
  static constexpr std::string_view id = "next_measurement";
  static constexpr std::string_view doc = "A measurement that the two leading causes answer differently.";
  static constexpr auto fields =
      std::tuple(field("batch", "sequences", unit::count, &Self::batch),
                 field("context_tokens", "of each", unit::tokens, &Self::context),
                 field("first", "a cause", [](const Self& next) { return study::name(next.first); }),
                 field("first_tpot_seconds", "TPOT with it alone", &Self::with_first),
                 field("second", "another", [](const Self& next) { return study::name(next.second); }),
                 field("second_tpot_seconds", "TPOT with it alone", &Self::with_second));
};

template <>
struct FieldList<study::ClientView> {
  using Self = study::ClientView;
  static constexpr std::string_view id = "client_view";
  static constexpr std::string_view doc = "What a client of the server sees beside the explained step.";
  static constexpr auto fields =
      std::tuple(field("tpot_seconds", "mean", &Self::tpot),
                 field("prefill_share", "of TPOT, beyond a step of decode alone: other requests' prompts", unit::share,
                       &Self::prefill_share),
                 field("predicted_prefill_share", "of time: requests per second x prefill_seconds", unit::share,
                       &Self::predicted_prefill_share),
                 field("ttft_seconds", "mean", &Self::ttft),
                 field("prefill_seconds", "of one prompt alone, predicted", &Self::prefill));
};

template <>
struct FieldList<study::Diagnosis> {
  using Self = study::Diagnosis;
  static constexpr std::string_view id = "diagnosis";
  static constexpr std::string_view doc =
      "Why steps took longer than predicted. Of a model that several devices share, times and bytes are one device's.";
  static constexpr std::string_view csv_rows = "explanations";
  static constexpr auto fields = std::tuple(
      field("model", "its name", [](const Self& answer) { return answer.at().prediction.whole.name; }),
      field("machine", "its name", [](const Self& answer) { return answer.at().machine().name; }),
      field("stack", "whose kernels are predicted",
            [](const Self& answer) { return answer.at().machine().stack.name; }),
      field("tensor_parallel_size", "devices that share the model", unit::count,
            [](const Self& answer) { return answer.at().prediction.model.tensor_parallel_size; }),
      field("pace", "of the explained step; as_predicted: every step is in its interval",
            names_up_to<study::Pace::slower>(), [](const Self& answer) { return study::name(answer.pace); }),
      field("steps", "as they were measured", &Self::steps),
      field("explained_step", "whose gap is explained: an index of `steps`", unit::count, &Self::reference),
      field("gap_seconds", "of it, measured less predicted", [](const Self& answer) { return answer.at().gap(); }),
      field("over_context", "where one batch was measured at two contexts", &Self::over_context),
      field("client", "where the step is of a server's result", &Self::client),
      field("explanations", "the largest share first; none where nothing is to be explained", &Self::explanations),
      field("unknown", "probability that it is none of these", unit::share, &Self::unknown),
      field("next", "where the two leading causes can be told apart", &Self::next),
      field("ops", "of the explained step", [](const Self& answer) { return present::reported_floors(answer.at()); }),
      field("warnings", "what makes the figures less than they seem", [](const Self& answer) {
        std::vector<std::string> all = answer.warnings;
        all.insert(all.end(), answer.at().prediction.warnings.begin(), answer.at().prediction.warnings.end());
        return all;
      }));
};

}  // namespace dculab

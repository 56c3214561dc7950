// The fields of what `dculab validate --serving` answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "present/output/field_json.hpp"
#include "present/study/score_fields.hpp"
#include "study/validate/served_fit.hpp"
#include "study/validate/served_runs.hpp"

namespace dculab::present {

struct ReportedServed {
  const study::ServedRuns& runs;
  const std::vector<study::FittedWithout>* fits = nullptr;  // with --leave-one-out
};

// "yes", "no" or "unknown".
[[nodiscard]] const char* stated_text(config::Stated stated);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<study::ServedRow> {
  using Row = study::ServedRow;
  static constexpr std::string_view id = "served_row";
  static constexpr std::string_view doc = "A figure of a served run that others measured, beside what is predicted.";
  static constexpr auto fields = std::tuple(
      field("line", "in the file", [](const Row& row) { return row.figure.line; }),
      field("experiment", "its name", [](const Row& row) { return row.figure.experiment; }),
      field("stage", "of the experiment", [](const Row& row) { return row.figure.stage; }),
      field("model", "its name on the Hub", [](const Row& row) { return row.figure.load.model; }),
      field("machine", "its name", [](const Row& row) { return row.figure.load.machine; }),
      field("devices", "that share the model", unit::count, [](const Row& row) { return row.figure.load.devices; }),
      field("workload", "of the experiment", [](const Row& row) { return row.figure.workload; }),
      field("cpu_offload", "whether KV went to the host's memory", one_of("yes", "no", "unknown"),
            [](const Row& row) { return present::stated_text(row.figure.cpu_offload); }),
      field("metric", "what was measured", [](const Row& row) { return config::name(row.figure.metric); }),
      field("measured", "by others", [](const Row& row) { return row.figure.measured; }),
      field("predicted", "simulated here", &Row::predicted),
      field("error", "predicted / measured - 1", unit::share, &Row::error),
      field("predicted_by", "by rivals, as published", [](const Row& row) { return row.figure.predicted_by; }));
};

template <>
struct FieldList<study::ServedScore> {
  using Score = study::ServedScore;
  static constexpr std::string_view id = "served_score";
  static constexpr std::string_view doc = "Errors of one metric by who predicts it.";
  static constexpr auto fields =
      std::tuple(field("predicted_by", "dculab, or a rival", &Score::who),
                 field("metric", "its name", [](const Score& score) { return config::name(score.metric); }),
                 inlined(&Score::error));
};

template <>
struct FieldList<study::CommonScore> {
  using Score = study::CommonScore;
  static constexpr std::string_view id = "common_score";
  static constexpr std::string_view doc = "Errors of one metric where a rival and dculab both predict.";
  static constexpr auto fields =
      std::tuple(field("rival", "its name", &Score::rival),
                 field("metric", "its name", [](const Score& score) { return config::name(score.metric); }),
                 field("count", "rows", unit::count, [](const Score& score) { return score.ours.count; }),
                 field("median_abs_error", "median |error| of dculab", unit::share,
                       [](const Score& score) { return score.ours.median_abs_error; }),
                 field("rival_median_abs_error", "and of the rival", unit::share,
                       [](const Score& score) { return score.theirs.median_abs_error; }));
};

template <>
struct FieldList<study::FittedWithout> {
  using Fit = study::FittedWithout;
  static constexpr std::string_view id = "fitted_without";
  static constexpr std::string_view doc = "What the other experiments teach of a server, beside the stack's file.";
  static constexpr auto fields = std::tuple(
      field("without", "the experiment that is left out", &Fit::experiment),
      field("host.per_request", "added to the stack's", [](const Fit& fit) { return fit.figures.per_request; }),
      field("sampler.per_step", "factor of the stack's", unit::ratio,
            [](const Fit& fit) { return fit.figures.sampler_step; }),
      field("sampler.per_logit", "factor of the stack's", unit::ratio,
            [](const Fit& fit) { return fit.figures.sampler_logit; }));
};

template <>
struct FieldList<present::ReportedServed> {
  using Self = present::ReportedServed;
  static constexpr std::string_view id = "served_validation";
  static constexpr std::string_view doc = "Served runs that others measured, simulated.";
  static constexpr std::string_view csv_rows = "rows";
  static constexpr auto fields = std::tuple(
      field("not_priced", "rows that are left out, with their reasons",
            [](const Self& reported) -> const std::vector<study::LeftOutRow>& { return reported.runs.unpriced; }),
      field("rows", "all others",
            [](const Self& reported) -> const std::vector<study::ServedRow>& { return reported.runs.rows; }),
      field("scores", "errors by who predicts, ours first",
            [](const Self& reported) -> const std::vector<study::ServedScore>& { return reported.runs.scores; }),
      field("common", "errors of the rows that a rival predicts too",
            [](const Self& reported) -> const std::vector<study::CommonScore>& { return reported.runs.common; }),
      field("fitted_without", "of each experiment that was left out",
            [](const Self& reported) { return when(reported.fits != nullptr, [&] { return *reported.fits; }); }));
};

}  // namespace dculab

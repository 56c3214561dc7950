// The fields of predicted against measured: rows, errors, and what is left out.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "present/output/field_json.hpp"
#include "sim/calibration/errors.hpp"
#include "study/validate/leave_one_out.hpp"
#include "study/validate/scores.hpp"

namespace dculab::present {

// What is not scored.
struct ReportedLeftOutRows {
  const study::Scores& scores;
};

// What was left out, one of study::left_out_groups(), and what the others say of it.
struct ReportedLeftOut {
  std::vector<study::LeftOutScore> scores;
  const std::vector<study::LeftOutPoint>& points;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<sim::ErrorSummary> {
  using Error = sim::ErrorSummary;
  static constexpr std::string_view id = "errors";
  static constexpr std::string_view doc = "Errors of predicted times: predicted / measured - 1.";
  static constexpr auto fields =
      std::tuple(field("count", "rows", unit::count, &Error::count),
                 field("median_abs_error", "median |error|", unit::share, &Error::median_abs_error),
                 field("p90_abs_error", "90th percentile of |error|", unit::share, &Error::p90_abs_error),
                 field("bias", "mean error", unit::share, &Error::bias));
};

template <>
struct FieldList<study::Score> {
  static constexpr std::string_view id = "score";
  static constexpr std::string_view doc = "Errors of some rows.";
  static constexpr auto fields = std::tuple(
      inlined(&study::Score::error), field("inside_interval", "of the measurements, those inside their 90 % interval",
                                           unit::share, &study::Score::inside));
};

template <>
struct FieldList<study::ScoreSummary> {
  using Summary = study::ScoreSummary;
  static constexpr std::string_view id = "score_summary";
  static constexpr std::string_view doc = "Errors of all rows, and of groups of them.";

  [[nodiscard]] static std::vector<std::pair<std::string, study::Score>> groups(const Summary& summary,
                                                                                std::string_view by) {
    std::vector<std::pair<std::string, study::Score>> groups;
    for (const study::GroupScore& group : summary.groups)
      if (group.by == by) groups.emplace_back(group.name, group.score);
    return groups;
  }

  static constexpr auto fields = std::tuple(
      inlined(&Summary::all),
      field("by_kind", "by what was measured", [](const Summary& summary) { return groups(summary, "kind"); }),
      field("by_machine", "by the name of the machine",
            [](const Summary& summary) { return groups(summary, "machine"); }),
      field("by_model", "by the name of the model", [](const Summary& summary) { return groups(summary, "model"); }),
      field("by_software", "by the program that ran",
            [](const Summary& summary) { return groups(summary, "software"); }));
};

template <>
struct FieldList<study::ScoredRow> {
  using Row = study::ScoredRow;
  static constexpr std::string_view id = "scored_row";
  static constexpr std::string_view doc = "A measurement beside what is predicted; both in `unit`.";
  static constexpr auto fields = std::tuple(
      field("id", "of the row", &Row::id), field("line", "in the file, or the number of the step", &Row::line),
      field("kind", "what was measured", &Row::kind), field("machine", "its name", &Row::machine),
      field("model", "its name", &Row::model), field("software", "the program that ran", &Row::software),
      field("measured", "as published, or as the trace has it", &Row::measured),
      field("predicted", "our prediction", &Row::predicted),
      field("unit", "of the values: s, tokens/s ...", &Row::unit),
      field("ratio", "predicted / measured", unit::ratio, &Row::ratio),
      field("low", "lower end of the 90 % interval", &Row::low), field("high", "its upper end", &Row::high),
      field("basis", "what the interval rests on", &Row::basis), field("bound", "what limits the time", &Row::bound),
      field("note", "how it was predicted, where that is not as the row says",
            [](const Row& row) { return when(!row.note.empty(), [&row] { return row.note; }); }));
};

template <>
struct FieldList<study::LeftOutRow> {
  using Row = study::LeftOutRow;
  static constexpr std::string_view id = "left_out_row";
  static constexpr std::string_view doc = "A row that is not scored.";
  static constexpr auto fields = std::tuple(field("line", "in the file", &Row::line),
                                            field("id", "of the row", &Row::id), field("reason", "why", &Row::reason));
};

template <>
struct FieldList<present::ReportedLeftOutRows> {
  using Self = present::ReportedLeftOutRows;
  static constexpr std::string_view id = "left_out_rows";
  static constexpr std::string_view doc = "Rows that are not scored.";
  static constexpr auto fields = std::tuple(
      field("refused", "faster than the machine can be", [](const Self& reported) { return reported.scores.refused; }),
      field("not_priced", "nothing is known to predict them with",
            [](const Self& reported) { return reported.scores.unpriced; }));
};

template <>
struct FieldList<study::LeftOutScore> {
  using Score = study::LeftOutScore;
  static constexpr std::string_view id = "left_out_score";
  static constexpr std::string_view doc = "Errors of what was left out, as all others predict it.";
  static constexpr auto fields = std::tuple(
      field("left_out", "its name; all: over all that was left out", &Score::left_out),
      field("kind", "what was measured; all: everything", &Score::kind), inlined(&Score::ours),
      field("inside_interval", "of the measurements, those inside their 90 % interval", unit::share, &Score::inside),
      field("naive_median_abs_error", "median |error| of the naive roofline", unit::share,
            [](const Score& score) { return score.naive.median_abs_error; }),
      field("naive_bias", "its mean error", unit::share, [](const Score& score) { return score.naive.bias; }));
};

template <>
struct FieldList<study::LeftOutPoint> {
  using Point = study::LeftOutPoint;
  static constexpr std::string_view id = "left_out_point";
  static constexpr std::string_view doc =
      "A row as the points of all others predict it, in s, tokens/s or what it is in.";
  static constexpr auto fields = std::tuple(
      field("id", "of the row", [](const Point& point) { return point.row.id; }),
      field("predicted", "our prediction", [](const Point& point) { return point.row.predicted; }),
      field("measured", "as published, or as the trace has it", [](const Point& point) { return point.row.measured; }),
      field("low", "lower end of the 90 % interval", [](const Point& point) { return point.row.low; }),
      field("high", "its upper end", [](const Point& point) { return point.row.high; }),
      field("naive", "what the naive roofline says", [](const Point& point) { return point.row.naive; }),
      field("kind", "what was measured", [](const Point& point) { return point.row.kind; }),
      field("machine", "its name", [](const Point& point) { return point.row.machine; }),
      field("left_out", "what it belongs to", &Point::left_out));
};

template <>
struct FieldList<present::ReportedLeftOut> {
  using Self = present::ReportedLeftOut;
  static constexpr std::string_view id = "left_out";
  static constexpr std::string_view doc = "Each of a group predicted from all others.";
  static constexpr auto fields = std::tuple(
      field("scores", "left out x kind, then each kind over all, then all", &Self::scores),
      field("points", "row by row",
            [](const Self& reported) -> const std::vector<study::LeftOutPoint>& { return reported.points; }));
};

template <>
struct FieldList<study::SourceEffect> {
  using Effect = study::SourceEffect;
  static constexpr std::string_view id = "source_effect";
  static constexpr std::string_view doc = "What a source does to predictions of another vendor's machines.";
  static constexpr auto fields =
      std::tuple(field("source", "its name", &Effect::source), field("vendor", "of the machines", &Effect::vendor),
                 field("with", "median |error| of fits with the source", unit::share, &Effect::with),
                 field("without", "and of fits without it", unit::share, &Effect::without));
};

}  // namespace dculab

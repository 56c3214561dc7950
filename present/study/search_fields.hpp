// The fields of what a search answers: `dculab study` of a scenario with objective, pareto or constraints, and
// `dculab merge`.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "present/output/field_json.hpp"
#include "present/study/metric_text.hpp"
#include "present/study/sensitivity_report.hpp"
#include "present/values/input_sensitivity_report.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/op_report.hpp"
#include "present/values/verdict_text.hpp"
#include "study/search/search_answer.hpp"

namespace dculab::present {

// Of a space, with its figures by name; those that a point does not have are left out.
struct SearchedPoint {
  const study::SweepSpace& space;
  const study::KeptPoint& point;

  [[nodiscard]] std::vector<std::pair<std::string_view, double>> figures() const {
    std::vector<std::pair<std::string_view, double>> named;
    for (std::size_t metric = 0; metric < point.figures.size(); ++metric)
      if (!std::isnan(point.figures[metric])) named.emplace_back(space.metrics()[metric], point.figures[metric]);
    return named;
  }
};

// What a point's time rests on: of a step, or of the steps that serve the requests.
struct SearchedTrust {
  study::PointTrust trust;
  bool is_served = false;
};

struct ReportedPoint {
  SearchedPoint point;
  std::optional<SearchedTrust> trust{};
  std::optional<Part<std::vector<PricedOp>>> ops{};  // of the best step
};

// The best point with a group and a block size, by the objective's metric alone.
struct PairPoint {
  SearchedPoint point;
};

// Any point, without what its time rests on.
struct WeighedPoint {
  SearchedPoint point;
  bool meets_constraints = false;
};

struct BestOfValue {
  std::string key, value;
  std::optional<ReportedPoint> best{};
};

struct PointCounts {
  std::uint64_t all = 0, met = 0, excluded = 0, refused = 0;
  std::optional<std::string> first_refusal{};
};

struct ReportedGoal {
  config::Goal goal = config::Goal::minimize;
  std::string metric;
};

struct ReportedSearch {
  PointCounts points;
  ReportedGoal objective;
  std::vector<Part<ReportedPoint>> best{};
  std::optional<ByMachine<std::vector<ReportedInputSensitivity>>> input_sensitivity{};  // where there is a best point
  std::optional<ByMachine<MachineFacts>> machine_facts{};                               // the same
  std::optional<std::vector<ReportedBlockSizes>> block_sizes{};
  std::optional<std::vector<Part<BestOfValue>>> best_of_values{};
  std::optional<std::vector<Part<PairPoint>>> best_of_pairs{};
  std::optional<std::vector<Part<WeighedPoint>>> all{};
  std::optional<ServiceLevel> slo{};
  std::optional<std::vector<ReportedGoal>> aims{};
  std::optional<std::vector<Part<ReportedPoint>>> pareto{};
  std::optional<std::vector<ReportedSensitivity>> sensitivity{};
};

// The part of a search that is in a journal of its own.
struct ReportedShard {
  int shard = 0, shards = 0;
  std::uint64_t first_point = 0, points = 0, all_points = 0;
};
struct ReportedShards {
  ReportedShard shard;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedGoal> {
  using Goal = present::ReportedGoal;
  static constexpr std::string_view id = "goal";
  static constexpr std::string_view doc = "A metric that is to be large or small.";
  static constexpr auto fields =
      std::tuple(field("goal", "which of the two", one_of("maximize", "minimize"),
                       [](const Goal& each) { return each.goal == config::Goal::maximize ? "maximize" : "minimize"; }),
                 field("metric", "its name", &Goal::metric));
};

template <>
struct FieldList<present::PointCounts> {
  using Counts = present::PointCounts;
  static constexpr std::string_view id = "point_counts";
  static constexpr std::string_view doc = "How many points a search has.";
  static constexpr auto fields =
      std::tuple(field("all", "points of the sweep", unit::count, &Counts::all),
                 field("met", "those that meet the constraints", unit::count, &Counts::met),
                 field("excluded", "those that do not", unit::count, &Counts::excluded),
                 field("refused", "those that cannot be", unit::count, &Counts::refused),
                 field("first_refusal", "why the first of these cannot be", &Counts::first_refusal));
};

template <>
struct FieldList<present::SearchedPoint> {
  using Self = present::SearchedPoint;
  static constexpr std::string_view id = "searched_point";
  static constexpr std::string_view doc = "A point of a search, by its place in the sweep.";
  static constexpr auto fields =
      std::tuple(field("point", "its number in the sweep", [](const Self& each) { return each.point.number; }),
                 field("choices", "keys of the scenario and their values",
                       [](const Self& each) { return each.space.choices(each.point.number); }),
                 keyed(present::metric_keys, &Self::figures),
                 field("bound", "what limits most of the time", [](const Self& each) { return each.point.bound; }));
};

template <>
struct FieldList<present::SearchedTrust> {
  using Self = present::SearchedTrust;
  static constexpr std::string_view id = "point_trust";
  static constexpr std::string_view doc = "What a point's time rests on.";

  [[nodiscard]] static std::optional<Interval<double>> ends(const Self& reported, bool is_served) {
    if (reported.is_served != is_served) return std::nullopt;
    return interval(reported.trust.low, reported.trust.high);
  }

  static constexpr auto fields =
      std::tuple(field("machine", "its name", [](const Self& reported) { return reported.trust.machine; }),
                 field("basis", "what the interval rests on", names_up_to<sim::Basis::priors>(),
                       [](const Self& reported) { return sim::name(reported.trust.basis); }),
                 field("step_time_interval", "of served requests: of their steps' times over their predictions, 90 %",
                       unit::ratio, [](const Self& reported) { return ends(reported, true); }),
                 field("interval_seconds", "of a step, 90 %", unit::seconds,
                       [](const Self& reported) { return ends(reported, false); }));
};

template <>
struct FieldList<present::ReportedPoint> {
  using Self = present::ReportedPoint;
  static constexpr std::string_view id = "point";
  static constexpr std::string_view doc = "A point of a search, and what it comes to.";
  static constexpr auto fields =
      std::tuple(inlined(&Self::point), inlined(&Self::trust), field("ops", "of the best point's step", &Self::ops));
};

template <>
struct FieldList<present::PairPoint> {
  using Self = present::PairPoint;
  static constexpr std::string_view id = "pair_point";
  static constexpr std::string_view doc = "The best point with a number of KV heads and a block size.";

  // The objective's.
  [[nodiscard]] static std::vector<std::pair<std::string, double>> figure(const Self& reported) {
    const std::string& metric = reported.point.space.scenario().objective.metric;
    return {{metric, reported.point.point.figures[reported.point.space.metric(metric)]}};
  }

  static constexpr auto fields = std::tuple(
      field("point", "its number in the sweep", [](const Self& reported) { return reported.point.point.number; }),
      field("choices", "keys of the scenario and their values",
            [](const Self& reported) { return reported.point.space.choices(reported.point.point.number); }),
      keyed(present::metric_keys, &figure),
      field("bound", "what limits most of the time", [](const Self& reported) { return reported.point.point.bound; }));
};

template <>
struct FieldList<present::WeighedPoint> {
  using Self = present::WeighedPoint;
  static constexpr std::string_view id = "weighed_point";
  static constexpr std::string_view doc = "A point of a search, whether or not it meets the constraints.";
  static constexpr auto fields = std::tuple(
      inlined(&Self::point),
      field("meets_constraints", "those of the scenario, and objective.subject_to", &Self::meets_constraints));
};

template <>
struct FieldList<present::BestOfValue> {
  using Best = present::BestOfValue;
  static constexpr std::string_view id = "best_of_value";
  static constexpr std::string_view doc = "The best point that has a value of an axis.";
  static constexpr auto fields =
      std::tuple(field("key", "of the axis", &Best::key), field("value", "of that key", &Best::value),
                 field("best", "null: no point with it meets the constraints",
                       [](const Best& each) { return or_null(each.best); }));
};

template <>
struct FieldList<present::ReportedSearch> {
  using Self = present::ReportedSearch;
  static constexpr std::string_view id = "search";
  static constexpr std::string_view doc = "A search through a sweep.";
  static constexpr std::string_view csv_rows = "pareto|best";
  static constexpr auto fields = std::tuple(
      field("points", "how many there are", &Self::points), field("objective", "what is best", &Self::objective),
      field("best", "the best points, the best first", &Self::best),
      field("leans_on", "assumed figures, by machine, the most important first", &Self::input_sensitivity),
      field("machine_facts", "figures of the machines, by name", &Self::machine_facts),
      field("block_sizes", "which to take on each machine, of served requests", &Self::block_sizes),
      field("best_of_values", "of each value of an axis", &Self::best_of_values),
      field("best_of_pairs", "of each number of KV heads and block size, where both are axes", &Self::best_of_pairs),
      field("served_points", "every point that can be, of served requests with at most 256 points", &Self::all),
      field("slo", "that served requests are held to", &Self::slo), field("aims", "what the front is of", &Self::aims),
      field("pareto", "points that no other beats in all aims", &Self::pareto),
      field("sensitivity", "which figures of the best point's machine would change the answer", &Self::sensitivity));
};

template <>
struct FieldList<present::ReportedShard> {
  using Shard = present::ReportedShard;
  static constexpr std::string_view id = "shard";
  static constexpr std::string_view doc = "The part of a search that was done here.";
  static constexpr auto fields =
      std::tuple(field("shard", "which, counted from 1", &Shard::shard),
                 field("shards", "of how many", unit::count, &Shard::shards),
                 field("first_point", "the number of its first point", &Shard::first_point),
                 field("points", "points of it", unit::count, &Shard::points),
                 field("all_points", "points of all shards", unit::count, &Shard::all_points));
};

template <>
struct FieldList<present::ReportedShards> {
  static constexpr std::string_view id = "searched_shard";
  static constexpr std::string_view doc = "One of several shards of a search: how far it is.";
  static constexpr auto fields = std::tuple(field("shard", "which", &present::ReportedShards::shard));
};

}  // namespace dculab

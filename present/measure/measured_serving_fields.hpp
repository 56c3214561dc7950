// The fields of requests that this machine's engine served and that were simulated: a body of `dculab study --measure`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "present/measure/measured_fields.hpp"
#include "present/measure/served_replicas.hpp"
#include "present/study/comparison_table.hpp"
#include "present/study/serving_report.hpp"
#include "study/measure/served_study.hpp"

namespace dculab::present {

// Of a server with two sets of KV heads: who got which.
struct ComparedHeadSets {
  HeadSetFigures simulated, measured;
};
[[nodiscard]] std::optional<ComparedHeadSets> compared_head_sets(const study::ComparedPointServing& served);

// How many of all compared figures agree.
struct ServedAgreement {
  int within = 0, inside = 0;
  std::size_t compared = 0;
};
[[nodiscard]] ServedAgreement agreement_of(const study::ServedStudy& found);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<study::ComparedMetric> {
  using Metric = study::ComparedMetric;
  static constexpr std::string_view id = "compared_metric";
  static constexpr std::string_view doc = "A figure of served requests: a time in s, a rate in 1/s or a number.";
  static constexpr auto fields =
      std::tuple(field("simulated", "under the virtual clock", &Metric::simulated),
                 field("interval", "of the simulated figure, 90 %",
                       [](const Metric& metric) { return interval(metric.low, metric.high); }),
                 field("measured", "median of the rounds", &Metric::measured),
                 field("limit", "how far the simulator may be off", unit::share, &Metric::limit),
                 field("within", "that limit", [](const Metric& metric) { return metric.is_within(); }));
};

template <>
struct FieldList<present::ComparedHeadSets> {
  using Sets = present::ComparedHeadSets;
  static constexpr std::string_view id = "compared_head_sets";
  static constexpr std::string_view doc = "A server with two sets of KV heads.";
  static constexpr auto fields = std::tuple(field("simulated", "who got which", &Sets::simulated),
                                            field("measured", "in the last round", &Sets::measured));
};

template <>
struct FieldList<study::ComparedPointServing> {
  using Served = study::ComparedPointServing;
  static constexpr std::string_view id = "compared_serving";
  static constexpr std::string_view doc = "Requests served here and simulated, at a point of the sweep.";

  [[nodiscard]] static std::vector<std::pair<std::string, study::ComparedMetric>> metrics(const Served& served) {
    std::vector<std::pair<std::string, study::ComparedMetric>> metrics;
    for (const study::ComparedMetric& each : served.metrics) metrics.emplace_back(each.metric, each);
    return metrics;
  }

  static constexpr auto fields =
      std::tuple(field("choices", "keys of the scenario and their values",
                       [](const Served& served) { return served.point->choices; }),
                 field("metrics", "by name", &metrics),
                 field("replicas", "where there are several",
                       [](const Served& served) { return unless_empty(present::served_replicas(served.last)); }),
                 field("groups_by_load", "of a server with two sets of KV heads",
                       [](const Served& served) { return present::compared_head_sets(served); }));
};

template <>
struct FieldList<present::ServedAgreement> {
  using Agreement = present::ServedAgreement;
  static constexpr std::string_view id = "served_agreement";
  static constexpr std::string_view doc = "How many figures agree.";
  static constexpr auto fields =
      std::tuple(field("within", "figures within their limits", unit::count, &Agreement::within),
                 field("inside_interval", "figures inside their intervals", unit::count, &Agreement::inside),
                 field("compared", "figures", unit::count, &Agreement::compared));
};

template <>
struct FieldList<study::ServedStudy> {
  using Study = study::ServedStudy;
  static constexpr std::string_view id = "measured_serving";
  static constexpr std::string_view doc = "Requests that this machine's engine served, and their simulation.";
  static constexpr std::string_view csv_rows = "points";

  [[nodiscard]] static std::vector<study::ComparedPointServing> points(const Study& study) {
    std::vector<study::ComparedPointServing> points;
    for (const study::ServedGroup& group : study.groups)
      points.insert(points.end(), group.points.begin(), group.points.end());
    return points;
  }

  static constexpr auto fields =
      std::tuple(field("points", "of the sweep", &points),
                 inlined([](const Study& study) { return present::agreement_of(study); }),
                 field("machine_facts", "figures of this machine, calibrated, by its name",
                       [](const Study& study) { return present::facts_by_name(study.machine); }));
};

}  // namespace dculab

// The fields of variants against a baseline, and of speed against accuracy: bodies of `dculab study`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "present/output/field_json.hpp"
#include "present/study/variant_fields.hpp"
#include "present/values/input_sensitivity_report.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/verdict_text.hpp"
#include "study/answer/comparison.hpp"
#include "study/decide/group_choice.hpp"

namespace dculab::present {

// At a point; `baseline` where both fit, and it is not the baseline itself.
struct ReportedVariant {
  std::string variant;  // its name
  const study::VariantCost& cost;
  const study::VariantCost* baseline = nullptr;
};

struct ReportedComparedPoint {
  std::string machine;
  const study::ComparedPoint& point;
  const std::vector<study::ReportedScore>& scores;  // of all points
  const config::Compare& compare;
};

struct ReportedBestVariant {
  std::string machine;
  std::vector<config::Override> choices;
  ReportedCosts costs{};
};

struct ReportedComparisons {
  std::vector<Part<ReportedComparedPoint>> comparisons{};
  std::optional<ByMachine<MachineFacts>> machine_facts{};  // of those that something fits and runs on
  std::optional<ByMachine<std::vector<ReportedInputSensitivity>>> input_sensitivity{};
  std::optional<std::vector<ReportedBestVariant>> best{};
};

// A number of KV heads on a machine.
struct ReportedGroup {
  const study::GroupChoice& choices;
  const study::AccuracyCurve& curve;
  std::size_t index = 0;

  [[nodiscard]] const study::VariantCost& cost() const { return choices.costs[index]; }
};

struct ReportedKvHeads {
  int kv_heads = 0;
  std::optional<double> speed{};  // of the runner-up, over the recommended ones, minus 1
};

struct ReportedGroups {
  const study::GroupChoice& choices;
  const study::AccuracyCurve& curve;
  std::string reason{};
  std::vector<ReportedInputSensitivity> input_sensitivity{};
};

struct GroupStudies {
  std::string speed_model{}, accuracy_model{}, accuracy_metric{};
  double tolerance = 0, speed_tie = 0;
  std::vector<Part<ReportedGroups>> machines{};
  std::optional<ByMachine<MachineFacts>> machine_facts{};  // of those that something fits on
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedVariant> {
  using Self = present::ReportedVariant;
  static constexpr std::string_view id = "compared_variant";
  static constexpr std::string_view doc = "A variant, or the baseline, at a point of the sweep.";

  [[nodiscard]] static std::optional<std::vector<std::pair<std::string, double>>> change(const Self& reported) {
    if (reported.baseline == nullptr) return std::nullopt;
    std::vector<std::pair<std::string, double>> changes;
    for (const auto& [metric, value] : reported.baseline->figures)
      changes.emplace_back(metric, study::change_of(metric, reported.cost, *reported.baseline));
    return unless_empty(std::move(changes));
  }

  static constexpr auto fields =
      std::tuple(field("variant", "its name", &Self::variant),
                 inlined([](const Self& reported) -> const study::VariantCost& { return reported.cost; }),
                 field("change", "of its figures against the baseline's, where both fit", unit::share, &change));
};

template <>
struct FieldList<present::ReportedComparedPoint> {
  using Self = present::ReportedComparedPoint;
  static constexpr std::string_view id = "compared_point";
  static constexpr std::string_view doc = "Baseline and variants at a point of the sweep, on a machine.";

  [[nodiscard]] static std::vector<present::ReportedVariant> variants(const Self& reported) {
    const std::vector<study::VariantCost>& costs = reported.point.costs;
    std::vector<present::ReportedVariant> variants{{reported.compare.baseline, costs.front()}};
    for (std::size_t index = 1; index < costs.size(); ++index)
      variants.push_back({reported.compare.variants[index - 1].name, costs[index],
                          costs.front().fits() && costs[index].fits() ? &costs.front() : nullptr});
    return variants;
  }
  [[nodiscard]] static std::vector<std::variant<present::ScoredFigure, present::ScoredChange>> scores(
      const Self& reported) {
    std::vector<std::variant<present::ScoredFigure, present::ScoredChange>> scores;
    for (const study::ReportedScore& score : reported.scores) {
      if (score.point != &reported.point) continue;
      if (score.figure->stands_alone())
        scores.emplace_back(present::ScoredFigure{score});
      else
        scores.emplace_back(present::ScoredChange{score});
    }
    return scores;
  }

  static constexpr auto fields =
      std::tuple(field("machine", "its name", &Self::machine),
                 field("choices", "keys of the scenario and their values",
                       [](const Self& reported) { return reported.point.point->choices; }),
                 field("variants", "the baseline first", &variants),
                 field("reported", "what was published about this point, beside ours", &scores));
};

template <>
struct FieldList<present::ReportedBestVariant> {
  using Self = present::ReportedBestVariant;
  static constexpr std::string_view id = "best_variant";
  static constexpr std::string_view doc = "Which variant to take on a machine, and what the others cost.";
  static constexpr auto fields = std::tuple(
      field("machine", "its name", &Self::machine),
      field("choices", "of the sweep, with which it is so: keys of the scenario and their values", &Self::choices),
      inlined(&Self::costs));
};

template <>
struct FieldList<present::ReportedComparisons> {
  using Self = present::ReportedComparisons;
  static constexpr std::string_view id = "comparisons";
  static constexpr std::string_view doc = "Variants against a baseline, beside what was published about them.";
  static constexpr std::string_view csv_rows = "comparisons[machine, choices].variants";
  static constexpr auto fields =
      std::tuple(field("comparisons", "machine by machine, in the order of the sweep", &Self::comparisons),
                 field("machine_facts", "figures of the machines, by name", &Self::machine_facts),
                 field("leans_on", "assumed figures, by machine, the most important first", &Self::input_sensitivity),
                 field("best", "which variant to take, where nothing was published", &Self::best));
};

template <>
struct FieldList<present::ReportedGroup> {
  using Self = present::ReportedGroup;
  static constexpr std::string_view id = "group";
  static constexpr std::string_view doc = "A number of KV heads on a machine.";

  [[nodiscard]] static const study::GroupAccuracy* measured(const Self& reported) {
    return study::accuracy_of(reported.curve, reported.cost());
  }

  static constexpr auto fields = std::tuple(
      inlined([](const Self& reported) -> const study::VariantCost& { return reported.cost(); }),
      field("group_size", "query heads per KV head", unit::count,
            [](const Self& reported) { return reported.cost().model.heads().group_size(); }),
      field("kv_bytes_per_token", "of K and V", [](const Self& reported) { return study::kv_bytes(reported.cost()); }),
      field("accuracy", "the figure of accuracy_metric, where it was measured",
            [](const Self& reported) {
              return when(measured(reported) != nullptr, [&] { return measured(reported)->figure; });
            }),
      field("loss", "of accuracy, against no merged heads, where it was measured", unit::share,
            [](const Self& reported) {
              return when(measured(reported) != nullptr, [&] { return measured(reported)->loss; });
            }),
      field("method", "by which heads were merged, where it was measured",
            [](const Self& reported) {
              return when(measured(reported) != nullptr, [&] { return measured(reported)->method; });
            }),
      field("pareto", "nothing else beats it in one respect and equals it in the others",
            [](const Self& reported) { return static_cast<bool>(reported.choices.front[reported.index]); }));
};

template <>
struct FieldList<present::ReportedKvHeads> {
  using Self = present::ReportedKvHeads;
  static constexpr std::string_view id = "kv_heads";
  static constexpr std::string_view doc = "A number of KV heads.";
  static constexpr auto fields =
      std::tuple(field("num_key_value_heads", "of a layer", unit::count, &Self::kv_heads),
                 field("speed", "of the runner-up, over the recommended ones, minus 1", unit::share, &Self::speed));
};

template <>
struct FieldList<present::ReportedGroups> {
  using Self = present::ReportedGroups;
  static constexpr std::string_view id = "groups_on_machine";
  static constexpr std::string_view doc = "How many KV heads to keep on a machine.";

  [[nodiscard]] static std::vector<present::ReportedGroup> points(const Self& reported) {
    std::vector<present::ReportedGroup> points;
    for (std::size_t index = 0; index < reported.choices.costs.size(); ++index)
      points.push_back({reported.choices, reported.curve, index});
    return points;
  }
  [[nodiscard]] static int kv_heads(const Self& reported, std::size_t index) {
    return reported.choices.costs[index].model.heads().num_key_value_heads;
  }
  [[nodiscard]] static std::optional<present::ReportedKvHeads> runner_up(const Self& reported) {
    const auto& verdict = reported.choices.verdict;
    if (!verdict || !verdict->runner_up) return std::nullopt;
    return present::ReportedKvHeads{kv_heads(reported, *verdict->runner_up),
                                    reported.choices.faster(*verdict->runner_up, verdict->chosen)};
  }

  static constexpr auto fields =
      std::tuple(field("machine", "its name", [](const Self& reported) { return reported.choices.machine; }),
                 field("points", "by KV heads, the most first", &points), field("reason", "in words", &Self::reason),
                 field("recommendation", "where accuracy allows one",
                       [](const Self& reported) {
                         const auto& verdict = reported.choices.verdict;
                         return when(verdict.has_value(),
                                     [&] { return present::ReportedKvHeads{kv_heads(reported, verdict->chosen)}; });
                       }),
                 field("runner_up", "where there is one", &runner_up),
                 field("leans_on", "assumed figures, the most important first", &Self::input_sensitivity));
};

template <>
struct FieldList<present::GroupStudies> {
  using Self = present::GroupStudies;
  static constexpr std::string_view id = "group_studies";
  static constexpr std::string_view doc =
      "How many KV heads a model should keep: predicted speed against measured accuracy.";
  static constexpr std::string_view csv_rows = "machines[machine].points";
  static constexpr auto fields =
      std::tuple(field("speed_model", "whose speed is predicted", &Self::speed_model),
                 field("accuracy_model", "whose accuracy was measured", &Self::accuracy_model),
                 field("accuracy_metric", "by what: a column of the accuracy file", &Self::accuracy_metric),
                 field("tolerance", "accuracy that may be lost", unit::share, &Self::tolerance),
                 field("speed_tie", "speed that is given up for more KV heads", unit::share, &Self::speed_tie),
                 field("machines", "in the scenario's order", &Self::machines),
                 field("machine_facts", "figures of the machines, by name", &Self::machine_facts));
};

}  // namespace dculab

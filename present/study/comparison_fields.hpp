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
#include "present/values/leaning_report.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/verdict_text.hpp"
#include "study/answer/comparison.hpp"
#include "study/decide/group_choice.hpp"

namespace dculab::present {

// At a point; `baseline` where both fit, and it is not the baseline itself.
struct ToldVariant {
  std::string variant;  // its name
  const study::VariantCost& cost;
  const study::VariantCost* baseline = nullptr;
};

struct ToldComparedPoint {
  std::string machine;
  const study::ComparedPoint& point;
  const std::vector<study::ReportedScore>& scores;  // of all points
  const config::Compare& compare;
};

struct ToldBestVariant {
  std::string machine;
  std::vector<config::Override> choices;
  ToldCosts costs{};
};

struct ToldComparisons {
  std::vector<Part<ToldComparedPoint>> comparisons{};
  std::optional<ByMachine<MachineFacts>> machine_facts{};  // of those that something fits and runs on
  std::optional<ByMachine<std::vector<ToldLeaning>>> leans_on{};
  std::optional<std::vector<ToldBestVariant>> best{};
};

// A number of KV heads on a machine.
struct ToldGroup {
  const study::GroupChoice& choices;
  const study::AccuracyCurve& curve;
  std::size_t index = 0;

  [[nodiscard]] const study::VariantCost& cost() const { return choices.costs[index]; }
};

struct ToldKvHeads {
  int kv_heads = 0;
  std::optional<double> speed{};  // of the runner-up, over the recommended ones, minus 1
};

struct ToldGroups {
  const study::GroupChoice& choices;
  const study::AccuracyCurve& curve;
  std::string reason{};
  std::vector<ToldLeaning> leans_on{};
};

struct GroupStudies {
  std::string speed_model{}, accuracy_model{}, accuracy_metric{};
  double tolerance = 0, speed_tie = 0;
  std::vector<Part<ToldGroups>> machines{};
  std::optional<ByMachine<MachineFacts>> machine_facts{};  // of those that something fits on
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ToldVariant> {
  using Told = present::ToldVariant;
  static constexpr std::string_view id = "compared_variant";
  static constexpr std::string_view doc = "A variant, or the baseline, at a point of the sweep.";

  [[nodiscard]] static std::optional<std::vector<std::pair<std::string, double>>> change(const Told& told) {
    if (told.baseline == nullptr) return std::nullopt;
    std::vector<std::pair<std::string, double>> changes;
    for (const auto& [metric, value] : told.baseline->figures)
      changes.emplace_back(metric, study::change_of(metric, told.cost, *told.baseline));
    return unless_empty(std::move(changes));
  }

  static constexpr auto fields =
      std::tuple(field("variant", "its name", &Told::variant),
                 inlined([](const Told& told) -> const study::VariantCost& { return told.cost; }),
                 field("change", "of its figures against the baseline's, where both fit", unit::share, &change));
};

template <>
struct FieldList<present::ToldComparedPoint> {
  using Told = present::ToldComparedPoint;
  static constexpr std::string_view id = "compared_point";
  static constexpr std::string_view doc = "Baseline and variants at a point of the sweep, on a machine.";

  [[nodiscard]] static std::vector<present::ToldVariant> variants(const Told& told) {
    const std::vector<study::VariantCost>& costs = told.point.costs;
    std::vector<present::ToldVariant> variants{{told.compare.baseline, costs.front()}};
    for (std::size_t index = 1; index < costs.size(); ++index)
      variants.push_back({told.compare.variants[index - 1].name, costs[index],
                          costs.front().fits() && costs[index].fits() ? &costs.front() : nullptr});
    return variants;
  }
  [[nodiscard]] static std::vector<std::variant<present::ScoredFigure, present::ScoredChange>> reported(
      const Told& told) {
    std::vector<std::variant<present::ScoredFigure, present::ScoredChange>> reported;
    for (const study::ReportedScore& score : told.scores) {
      if (score.point != &told.point) continue;
      if (score.figure->stands_alone())
        reported.emplace_back(present::ScoredFigure{score});
      else
        reported.emplace_back(present::ScoredChange{score});
    }
    return reported;
  }

  static constexpr auto fields =
      std::tuple(field("machine", "its name", &Told::machine),
                 field("choices", "keys of the scenario and their values",
                       [](const Told& told) { return told.point.point->choices; }),
                 field("variants", "the baseline first", &variants),
                 field("reported", "what was published about this point, beside ours", &reported));
};

template <>
struct FieldList<present::ToldBestVariant> {
  using Told = present::ToldBestVariant;
  static constexpr std::string_view id = "best_variant";
  static constexpr std::string_view doc = "Which variant to take on a machine, and what the others cost.";
  static constexpr auto fields = std::tuple(
      field("machine", "its name", &Told::machine),
      field("choices", "of the sweep, with which it is so: keys of the scenario and their values", &Told::choices),
      inlined(&Told::costs));
};

template <>
struct FieldList<present::ToldComparisons> {
  using Told = present::ToldComparisons;
  static constexpr std::string_view id = "comparisons";
  static constexpr std::string_view doc = "Variants against a baseline, beside what was published about them.";
  static constexpr std::string_view csv_rows = "comparisons[machine, choices].variants";
  static constexpr auto fields =
      std::tuple(field("comparisons", "machine by machine, in the order of the sweep", &Told::comparisons),
                 field("machine_facts", "figures of the machines, by name", &Told::machine_facts),
                 field("leans_on", "assumed figures, by machine, the most important first", &Told::leans_on),
                 field("best", "which variant to take, where nothing was published", &Told::best));
};

template <>
struct FieldList<present::ToldGroup> {
  using Told = present::ToldGroup;
  static constexpr std::string_view id = "group";
  static constexpr std::string_view doc = "A number of KV heads on a machine.";

  [[nodiscard]] static const study::GroupAccuracy* measured(const Told& told) {
    return study::accuracy_of(told.curve, told.cost());
  }

  static constexpr auto fields = std::tuple(
      inlined([](const Told& told) -> const study::VariantCost& { return told.cost(); }),
      field("group_size", "query heads per KV head", unit::count,
            [](const Told& told) { return told.cost().model.heads().group_size(); }),
      field("kv_bytes_per_token", "of K and V", [](const Told& told) { return study::kv_bytes(told.cost()); }),
      field("accuracy", "the figure of accuracy_metric, where it was measured",
            [](const Told& told) { return when(measured(told) != nullptr, [&] { return measured(told)->figure; }); }),
      field("loss", "of accuracy, against no merged heads, where it was measured", unit::share,
            [](const Told& told) { return when(measured(told) != nullptr, [&] { return measured(told)->loss; }); }),
      field("method", "by which heads were merged, where it was measured",
            [](const Told& told) { return when(measured(told) != nullptr, [&] { return measured(told)->method; }); }),
      field("pareto", "nothing else beats it in one respect and equals it in the others",
            [](const Told& told) { return static_cast<bool>(told.choices.front[told.index]); }));
};

template <>
struct FieldList<present::ToldKvHeads> {
  using Told = present::ToldKvHeads;
  static constexpr std::string_view id = "kv_heads";
  static constexpr std::string_view doc = "A number of KV heads.";
  static constexpr auto fields =
      std::tuple(field("num_key_value_heads", "of a layer", unit::count, &Told::kv_heads),
                 field("speed", "of the runner-up, over the recommended ones, minus 1", unit::share, &Told::speed));
};

template <>
struct FieldList<present::ToldGroups> {
  using Told = present::ToldGroups;
  static constexpr std::string_view id = "groups_on_machine";
  static constexpr std::string_view doc = "How many KV heads to keep on a machine.";

  [[nodiscard]] static std::vector<present::ToldGroup> points(const Told& told) {
    std::vector<present::ToldGroup> points;
    for (std::size_t index = 0; index < told.choices.costs.size(); ++index)
      points.push_back({told.choices, told.curve, index});
    return points;
  }
  [[nodiscard]] static int kv_heads(const Told& told, std::size_t index) {
    return told.choices.costs[index].model.heads().num_key_value_heads;
  }
  [[nodiscard]] static std::optional<present::ToldKvHeads> runner_up(const Told& told) {
    const auto& verdict = told.choices.verdict;
    if (!verdict || !verdict->runner_up) return std::nullopt;
    return present::ToldKvHeads{kv_heads(told, *verdict->runner_up),
                                told.choices.faster(*verdict->runner_up, verdict->chosen)};
  }

  static constexpr auto fields = std::tuple(
      field("machine", "its name", [](const Told& told) { return told.choices.machine; }),
      field("points", "by KV heads, the most first", &points), field("reason", "in words", &Told::reason),
      field("recommendation", "where accuracy allows one",
            [](const Told& told) {
              const auto& verdict = told.choices.verdict;
              return when(verdict.has_value(), [&] { return present::ToldKvHeads{kv_heads(told, verdict->chosen)}; });
            }),
      field("runner_up", "where there is one", &runner_up),
      field("leans_on", "assumed figures, the most important first", &Told::leans_on));
};

template <>
struct FieldList<present::GroupStudies> {
  using Told = present::GroupStudies;
  static constexpr std::string_view id = "group_studies";
  static constexpr std::string_view doc =
      "How many KV heads a model should keep: predicted speed against measured accuracy.";
  static constexpr std::string_view csv_rows = "machines[machine].points";
  static constexpr auto fields =
      std::tuple(field("speed_model", "whose speed is predicted", &Told::speed_model),
                 field("accuracy_model", "whose accuracy was measured", &Told::accuracy_model),
                 field("accuracy_metric", "by what: a column of the accuracy file", &Told::accuracy_metric),
                 field("tolerance", "accuracy that may be lost", unit::share, &Told::tolerance),
                 field("speed_tie", "speed that is given up for more KV heads", unit::share, &Told::speed_tie),
                 field("machines", "in the scenario's order", &Told::machines),
                 field("machine_facts", "figures of the machines, by name", &Told::machine_facts));
};

}  // namespace dculab

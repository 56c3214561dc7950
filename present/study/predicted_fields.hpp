// The fields of a sweep of steps, of designs and of drafts, predicted: bodies of `dculab study`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "present/output/field_json.hpp"
#include "present/study/sensitivity_report.hpp"
#include "present/study/speculation_fields.hpp"
#include "present/study/step_decision_fields.hpp"
#include "present/values/input_sensitivity_report.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/op_report.hpp"
#include "sim/hardware/figure.hpp"
#include "study/decide/designs.hpp"
#include "study/decide/step_study.hpp"

namespace dculab::present {

struct ReportedStepPoint {
  const study::StepFigures& point;
  std::optional<std::vector<PricedOp>> ops{};
};

// On a machine.
struct ReportedSteps {
  const study::StepStudy& study;
  std::optional<ReportedStepDecision> recommendation{};
  std::vector<ReportedInputSensitivity> input_sensitivity{};
  std::optional<std::vector<ReportedSensitivity>> sensitivity{};
};

struct StepStudies {
  ByMachine<MachineFacts> machine_facts{};
  std::vector<Part<ReportedSteps>> machines{};
};

struct ReportedDesigns {
  const study::DesignStudy& study;
  std::vector<ReportedInputSensitivity> input_sensitivity{};
};

struct DesignStudies {
  ByMachine<MachineFacts> machine_facts{};
  std::vector<Part<ReportedDesigns>> designs{};
};

struct ReportedDrafts {
  std::string machine;
  std::vector<StudiedDraft> points;
  const std::vector<study::DraftAdvice>& advice;
};

struct DraftStudies {
  std::vector<Part<ReportedDrafts>> machines{};
};

struct ReportedDraftStudies {
  const std::vector<study::ReportedDrafts>& machines;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedStepPoint> {
  using Self = present::ReportedStepPoint;
  static constexpr std::string_view id = "step_point";
  static constexpr std::string_view doc = "A step at a point of the sweep.";
  static constexpr auto fields = std::tuple(
      field("choices", "keys of the scenario and their values",
            [](const Self& reported) { return reported.point.choices; }),
      field("step_seconds", "predicted time", [](const Self& reported) { return reported.point.seconds; }),
      field("interval_seconds", "90 %",
            [](const Self& reported) {
              const auto& trust = reported.point.trust;
              return when(trust.has_value(), [&] { return interval(trust->low, trust->high); });
            }),
      field("basis", "what the interval rests on", names_up_to<sim::Basis::priors>(),
            [](const Self& reported) {
              const auto& trust = reported.point.trust;
              return when(trust.has_value(), [&] { return sim::name(trust->basis); });
            }),
      field("tokens_per_second", "of the step", unit::tokens_per_second,
            [](const Self& reported) { return reported.point.tokens_per_second; }),
      field("bound", "what limits most of the step", [](const Self& reported) { return reported.point.bound; }),
      field("max_sequences", "of this length, that fit in memory", unit::count,
            [](const Self& reported) { return reported.point.max_sequences; }),
      field("ops", "in the order in which they run; not of a large sweep", &Self::ops));
};

template <>
struct FieldList<present::ReportedSteps> {
  using Self = present::ReportedSteps;
  static constexpr std::string_view id = "steps_on_machine";
  static constexpr std::string_view doc = "A sweep of steps on a machine.";

  [[nodiscard]] static std::vector<present::ReportedStepPoint> points(const Self& reported) {
    std::vector<present::ReportedStepPoint> points;
    for (std::size_t index = 0; index < reported.study.points.size(); ++index) {
      points.push_back({reported.study.points[index]});
      if (index >= reported.study.details.size()) continue;
      const study::StepDetails& details = reported.study.details[index];
      points.back().ops.emplace(present::priced_ops(details.plan, details.price, reported.study.machine));
    }
    return points;
  }

  static constexpr auto fields = std::tuple(
      field("machine", "its name", [](const Self& reported) { return reported.study.machine.name; }),
      field("points", "of the sweep", &points),
      field("recommendation", "where the sweep has several KV heads or block sizes, and one can be had",
            &Self::recommendation),
      field("models", "where the sweep has several models",
            [](const Self& reported) {
              const auto& models = reported.study.models;
              return when(models.has_value(), [&] { return present::reported_models(*models); });
            }),
      field("leans_on", "assumed figures, the most important first", &Self::input_sensitivity),
      field("sensitivity", "figures of the machine that would change the recommendation, where that is asked",
            &Self::sensitivity));
};

template <>
struct FieldList<present::StepStudies> {
  using Self = present::StepStudies;
  static constexpr std::string_view id = "step_studies";
  static constexpr std::string_view doc = "A sweep of steps, predicted.";
  static constexpr std::string_view csv_rows = "machines[machine].points";
  static constexpr auto fields =
      std::tuple(field("machine_facts", "figures of the machines, by name", &Self::machine_facts),
                 field("machines", "in the scenario's order", &Self::machines));
};

template <>
struct FieldList<study::DecidedDesign> {
  using Design = study::DecidedDesign;
  static constexpr std::string_view id = "design";
  static constexpr std::string_view doc = "A design, and the KV heads and block size to choose on it.";

  // What the scenario sets of the machine, by key.
  [[nodiscard]] static std::vector<std::pair<std::string, double>> figures(const Design& design) {
    constexpr std::string_view kMachine = "machine.";
    std::vector<std::pair<std::string, double>> figures;
    for (const auto& [key, value] : design.choices)
      if (key.starts_with(kMachine))
        figures.emplace_back(key.substr(kMachine.size()),
                             *sim::figure_value(design.machine, key.substr(kMachine.size())));
    return figures;
  }

  static constexpr auto fields = std::tuple(
      field("choices", "keys of the scenario and their values", &Design::choices),
      field("figures", "of the machine, that those set: in s, B, FLOP/s, B/s, Hz or a number", &figures),
      field("num_key_value_heads", "to choose", unit::count,
            [](const Design& design) { return design.choice.kv_heads; }),
      field("group_size", "query heads per KV head", unit::count,
            [](const Design& design) { return design.model.heads().group_size(); }),
      field("block_size", "to choose", unit::tokens, [](const Design& design) { return design.choice.block_size; }),
      field("step_seconds", "with them", &Design::seconds),
      field("interval_seconds", "90 %",
            [](const Design& design) { return interval(design.trust.low, design.trust.high); }),
      field("basis", "what the interval rests on", names_up_to<sim::Basis::priors>(),
            [](const Design& design) { return sim::name(design.trust.basis); }),
      field("bound", "what limits most of the step", &Design::bound));
};

template <>
struct FieldList<present::ReportedDesigns> {
  using Self = present::ReportedDesigns;
  static constexpr std::string_view id = "designs_of_machine";
  static constexpr std::string_view doc = "Designs that start from a machine.";
  static constexpr auto fields = std::tuple(
      field("machine", "its name", [](const Self& reported) { return reported.study.own.name; }),
      field("points", "the designs",
            [](const Self& reported) -> const std::vector<study::DecidedDesign>& { return reported.study.designs; }),
      field("leans_on", "assumed figures, the most important first", &Self::input_sensitivity),
      field("redesign", "what moved along with the last design",
            [](const Self& reported) { return reported.study.designs.back().machine.redesign; }));
};

template <>
struct FieldList<present::DesignStudies> {
  using Self = present::DesignStudies;
  static constexpr std::string_view id = "design_studies";
  static constexpr std::string_view doc = "Designs of machines, each with what to choose on it.";
  static constexpr std::string_view csv_rows = "designs[machine].points";
  static constexpr auto fields =
      std::tuple(field("machine_facts", "figures of the machines, by name", &Self::machine_facts),
                 field("designs", "by the machine that they start from", &Self::designs));
};

template <>
struct FieldList<present::ReportedDrafts> {
  using Self = present::ReportedDrafts;
  static constexpr std::string_view id = "drafts_on_machine";
  static constexpr std::string_view doc = "What drafts are worth on a machine.";
  static constexpr auto fields =
      std::tuple(field("machine", "its name", &Self::machine), field("points", "of the sweep", &Self::points),
                 field("advice", "how many tokens to draft, by the other axes",
                       [](const Self& reported) -> const std::vector<study::DraftAdvice>& { return reported.advice; }));
};

template <>
struct FieldList<present::DraftStudies> {
  static constexpr std::string_view id = "draft_studies";
  static constexpr std::string_view doc = "What drafts are worth, predicted.";
  static constexpr std::string_view csv_rows = "machines[machine].points";
  static constexpr auto fields =
      std::tuple(field("machines", "in the scenario's order", &present::DraftStudies::machines));
};

template <>
struct FieldList<study::ReportedDrafts> {
  using Drafts = study::ReportedDrafts;
  static constexpr std::string_view id = "reported_drafts";
  static constexpr std::string_view doc = "Published speed-ups by drafts beside ours, on a machine.";
  static constexpr auto fields = std::tuple(field("machine", "its name", &Drafts::machine),
                                            field("reported", "variant by variant", &Drafts::drafts));
};

template <>
struct FieldList<present::ReportedDraftStudies> {
  using Self = present::ReportedDraftStudies;
  static constexpr std::string_view id = "reported_draft_studies";
  static constexpr std::string_view doc = "Published speed-ups by drafts beside ours.";
  static constexpr std::string_view csv_rows = "machines[machine].reported";
  static constexpr auto fields = std::tuple(
      field("machines", "in the scenario's order",
            [](const Self& reported) -> const std::vector<study::ReportedDrafts>& { return reported.machines; }));
};

}  // namespace dculab

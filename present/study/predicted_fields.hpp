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
#include "present/values/leaning_report.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/op_report.hpp"
#include "sim/hardware/figure.hpp"
#include "study/decide/designs.hpp"
#include "study/decide/step_study.hpp"

namespace dculab::present {

struct ToldStepPoint {
  const study::StepFigures& point;
  std::optional<std::vector<PricedOp>> ops{};
};

// On a machine.
struct ToldSteps {
  const study::StepStudy& study;
  std::optional<ToldStepDecision> recommendation{};
  std::vector<ToldLeaning> leans_on{};
  std::optional<std::vector<ToldSensitivity>> sensitivity{};
};

struct StepStudies {
  ByMachine<MachineFacts> machine_facts{};
  std::vector<Part<ToldSteps>> machines{};
};

struct ToldDesigns {
  const study::DesignStudy& study;
  std::vector<ToldLeaning> leans_on{};
};

struct DesignStudies {
  ByMachine<MachineFacts> machine_facts{};
  std::vector<Part<ToldDesigns>> designs{};
};

struct ToldDrafts {
  std::string machine;
  std::vector<StudiedDraft> points;
  const std::vector<study::DraftAdvice>& advice;
};

struct DraftStudies {
  std::vector<Part<ToldDrafts>> machines{};
};

struct ReportedDraftStudies {
  const std::vector<study::ReportedDrafts>& machines;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ToldStepPoint> {
  using Told = present::ToldStepPoint;
  static constexpr std::string_view id = "step_point";
  static constexpr std::string_view doc = "A step at a point of the sweep.";
  static constexpr auto fields = std::tuple(
      field("choices", "keys of the scenario and their values", [](const Told& told) { return told.point.choices; }),
      field("step_seconds", "predicted time", [](const Told& told) { return told.point.seconds; }),
      field("interval_seconds", "90 %",
            [](const Told& told) {
              const auto& trust = told.point.trust;
              return when(trust.has_value(), [&] { return interval(trust->low, trust->high); });
            }),
      field("basis", "what the interval rests on", names_up_to<sim::Basis::priors>(),
            [](const Told& told) {
              const auto& trust = told.point.trust;
              return when(trust.has_value(), [&] { return sim::name(trust->basis); });
            }),
      field("tokens_per_second", "of the step", unit::tokens_per_second,
            [](const Told& told) { return told.point.tokens_per_second; }),
      field("bound", "what limits most of the step", [](const Told& told) { return told.point.bound; }),
      field("max_sequences", "of this length, that fit in memory", unit::count,
            [](const Told& told) { return told.point.max_sequences; }),
      field("ops", "in the order in which they run; not of a large sweep", &Told::ops));
};

template <>
struct FieldList<present::ToldSteps> {
  using Told = present::ToldSteps;
  static constexpr std::string_view id = "steps_on_machine";
  static constexpr std::string_view doc = "A sweep of steps on a machine.";

  [[nodiscard]] static std::vector<present::ToldStepPoint> points(const Told& told) {
    std::vector<present::ToldStepPoint> points;
    for (std::size_t index = 0; index < told.study.points.size(); ++index) {
      points.push_back({told.study.points[index]});
      if (index >= told.study.details.size()) continue;
      const study::StepDetails& details = told.study.details[index];
      points.back().ops.emplace(present::priced_ops(details.plan, details.price, told.study.machine));
    }
    return points;
  }

  static constexpr auto fields = std::tuple(
      field("machine", "its name", [](const Told& told) { return told.study.machine.name; }),
      field("points", "of the sweep", &points),
      field("recommendation", "where the sweep has several KV heads or block sizes, and one can be had",
            &Told::recommendation),
      field("models", "where the sweep has several models",
            [](const Told& told) {
              const auto& models = told.study.models;
              return when(models.has_value(), [&] { return present::told_models(*models); });
            }),
      field("leans_on", "assumed figures, the most important first", &Told::leans_on),
      field("sensitivity", "figures of the machine that would change the recommendation, where that is asked",
            &Told::sensitivity));
};

template <>
struct FieldList<present::StepStudies> {
  using Told = present::StepStudies;
  static constexpr std::string_view id = "step_studies";
  static constexpr std::string_view doc = "A sweep of steps, predicted.";
  static constexpr std::string_view csv_rows = "machines[machine].points";
  static constexpr auto fields =
      std::tuple(field("machine_facts", "figures of the machines, by name", &Told::machine_facts),
                 field("machines", "in the scenario's order", &Told::machines));
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
struct FieldList<present::ToldDesigns> {
  using Told = present::ToldDesigns;
  static constexpr std::string_view id = "designs_of_machine";
  static constexpr std::string_view doc = "Designs that start from a machine.";
  static constexpr auto fields =
      std::tuple(field("machine", "its name", [](const Told& told) { return told.study.own.name; }),
                 field("points", "the designs",
                       [](const Told& told) -> const std::vector<study::DecidedDesign>& { return told.study.designs; }),
                 field("leans_on", "assumed figures, the most important first", &Told::leans_on),
                 field("redesign", "what moved along with the last design",
                       [](const Told& told) { return told.study.designs.back().machine.redesign; }));
};

template <>
struct FieldList<present::DesignStudies> {
  using Told = present::DesignStudies;
  static constexpr std::string_view id = "design_studies";
  static constexpr std::string_view doc = "Designs of machines, each with what to choose on it.";
  static constexpr std::string_view csv_rows = "designs[machine].points";
  static constexpr auto fields =
      std::tuple(field("machine_facts", "figures of the machines, by name", &Told::machine_facts),
                 field("designs", "by the machine that they start from", &Told::designs));
};

template <>
struct FieldList<present::ToldDrafts> {
  using Told = present::ToldDrafts;
  static constexpr std::string_view id = "drafts_on_machine";
  static constexpr std::string_view doc = "What drafts are worth on a machine.";
  static constexpr auto fields =
      std::tuple(field("machine", "its name", &Told::machine), field("points", "of the sweep", &Told::points),
                 field("advice", "how many tokens to draft, by the other axes",
                       [](const Told& told) -> const std::vector<study::DraftAdvice>& { return told.advice; }));
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
  using Told = present::ReportedDraftStudies;
  static constexpr std::string_view id = "reported_draft_studies";
  static constexpr std::string_view doc = "Published speed-ups by drafts beside ours.";
  static constexpr std::string_view csv_rows = "machines[machine].reported";
  static constexpr auto fields =
      std::tuple(field("machines", "in the scenario's order",
                       [](const Told& told) -> const std::vector<study::ReportedDrafts>& { return told.machines; }));
};

}  // namespace dculab

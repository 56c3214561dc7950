// Small structs with every kind of field.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/units.hpp"
#include "fields/field_list.hpp"
#include "present/output/field_json.hpp"

namespace dculab::present::test {

enum class Phase { prefill, decode };
[[nodiscard]] inline std::string_view name(Phase phase) { return phase == Phase::prefill ? "prefill" : "decode"; }

struct Level {
  std::string name;
  Bytes size;
};

struct Drafts {
  int count = 0;
};

struct Step {
  Seconds time{0.5}, host{0.125};
  Phase phase = Phase::decode;
  std::optional<std::string> limit;  // left out where there is none
  std::optional<double> worst;       // null where there is none
  std::vector<Level> levels{{"L2", Bytes(4096)}};
  std::map<std::string, double> hits{{"L2", 0.25}};
  std::vector<std::pair<std::string, std::string>> choices{{"model.z", "8"}, {"batch", "2"}};
  std::vector<bool> fits{true, false};
  std::optional<Drafts> drafts;
  std::vector<std::pair<std::string_view, double>> metrics;
};

struct Answer {
  Part<Step> step{Step{}};
};

struct OtherAnswer {
  int steps = 2;
};

// Any key, each with a number.
struct Accuracies {
  std::map<std::string, double> of_metric{{"perplexity", 6.5}};
};

}  // namespace dculab::present::test

namespace dculab {

template <>
struct FieldList<present::test::Level> {
  static constexpr std::string_view id = "level", doc = "A memory level.";
  static constexpr auto fields = std::tuple(field("level", &present::test::Level::name, "its name"),
                                            field("bytes", &present::test::Level::size, "its size"));
};

template <>
struct FieldList<present::test::Drafts> {
  static constexpr std::string_view id = "drafts", doc = "What was drafted.";
  static constexpr auto fields = std::tuple(field("drafts", &present::test::Drafts::count, "drafts", unit::count));
};

template <>
struct FieldList<present::test::Step> {
  using Step = present::test::Step;
  static constexpr std::string_view id = "step", doc = "A step.";
  static constexpr auto fields =
      std::tuple(field("seconds", &Step::time, "all of it"),
                 field(
                     "host", [](const Step& step) { return step.host / step.time; }, "of the host", unit::share),
                 field(
                     "phase", [](const Step& step) { return name(step.phase); },
                     names_up_to<present::test::Phase::decode>, "what it does"),
                 field("limit", &Step::limit, "what ends the batch"),
                 field(
                     "worst", [](const Step& step) { return or_null(step.worst); }, "at worst", unit::ratio),
                 field(
                     "interval", [](const Step& step) { return interval(step.host, step.time); }, "90 %"),
                 field("levels", &Step::levels, "of the memory"), field("hits", &Step::hits, "by level", unit::share),
                 field("choices", &Step::choices, "of the sweep"), field("fits", &Step::fits, "in memory"),
                 inlined(&Step::drafts), keyed(&Step::metrics, [] {
                   return std::vector<DataKey>{{"step_time", "s", "of the step"}, {"tokens", "tokens", "new ones"}};
                 }));
};

template <>
struct FieldList<present::test::Answer> {
  static constexpr std::string_view id = "answer", doc = "An answer.";
  static constexpr auto fields = std::tuple(field("step", &present::test::Answer::step, "the step"));
};

template <>
struct FieldList<present::test::OtherAnswer> {
  static constexpr std::string_view id = "other_answer", doc = "Another answer.";
  static constexpr auto fields = std::tuple(field("steps", &present::test::OtherAnswer::steps, "steps", unit::count));
};

template <>
struct FieldList<present::test::Accuracies> {
  static constexpr std::string_view id = "accuracies", doc = "By metric.";
  static constexpr auto fields = std::tuple(keyed(&present::test::Accuracies::of_metric, nullptr));
};

}  // namespace dculab

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

}  // namespace dculab::present::test

namespace dculab {

template <>
struct FieldList<present::test::Level> {
  static constexpr std::string_view id = "level", doc = "A memory level.";
  static constexpr auto fields = std::tuple(field("level", "its name", &present::test::Level::name),
                                            field("bytes", "its size", &present::test::Level::size));
};

template <>
struct FieldList<present::test::Drafts> {
  static constexpr std::string_view id = "drafts", doc = "What was drafted.";
  static constexpr auto fields = std::tuple(field("drafts", "drafts", unit::count, &present::test::Drafts::count));
};

template <>
struct FieldList<present::test::Step> {
  using Step = present::test::Step;
  static constexpr std::string_view id = "step", doc = "A step.";
  static constexpr auto fields = std::tuple(
      field("seconds", "all of it", &Step::time),
      field("host", "of the host", unit::share, [](const Step& step) { return step.host / step.time; }),
      field("phase", "what it does", names_up_to<present::test::Phase::decode>(),
            [](const Step& step) { return name(step.phase); }),
      field("limit", "what ends the batch", &Step::limit),
      field("worst", "at worst", unit::ratio, [](const Step& step) { return or_null(step.worst); }),
      field("interval", "90 %", [](const Step& step) { return interval(step.host, step.time); }),
      field("levels", "of the memory", &Step::levels), field("hits", "by level", unit::share, &Step::hits),
      field("choices", "of the sweep", &Step::choices), field("fits", "in memory", &Step::fits), inlined(&Step::drafts),
      keyed(
          [] {
            return std::vector<DataKey>{{"step_time", "s", "of the step"}, {"tokens", "tokens", "new ones"}};
          },
          &Step::metrics));
};

template <>
struct FieldList<present::test::Answer> {
  static constexpr std::string_view id = "answer", doc = "An answer.";
  static constexpr auto fields = std::tuple(field("step", "the step", &present::test::Answer::step));
};

template <>
struct FieldList<present::test::OtherAnswer> {
  static constexpr std::string_view id = "other_answer", doc = "Another answer.";
  static constexpr auto fields = std::tuple(field("steps", "steps", unit::count, &present::test::OtherAnswer::steps));
};

}  // namespace dculab

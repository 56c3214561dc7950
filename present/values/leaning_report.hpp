// How a report names the assumed figures that its answer leans on.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "present/output/field_json.hpp"
#include "sim/calibration/leanings.hpp"

namespace dculab::present {

// Whose times were priced again: the answer's own, or those of steps behind an answer about requests, which may lean
// otherwise (phase_times of sim/serving/step_sample.hpp).
enum class Priced : std::uint8_t { answer, served_steps };

// "leans on assumed figures (change of the time when one is 10 % off): ...; 12 assumed figures change it by less
// than 1 %"; empty where nothing is assumed.
[[nodiscard]] std::string leaning_text(const sim::Machine& machine, const std::vector<sim::Leaning>& leanings,
                                       Priced priced = Priced::answer);

// An assumed figure that is worth telling.
struct ToldLeaning {
  std::string key;
  double change = 0;
  std::string source;
};
[[nodiscard]] std::vector<ToldLeaning> told_leanings(const sim::Machine& machine,
                                                     const std::vector<sim::Leaning>& leanings);

// Adds notes below a table: what moved along where the machine is redesigned, and the leanings. Returns those worth
// telling.
[[nodiscard]] std::vector<ToldLeaning> note_leanings(const sim::Machine& machine,
                                                     const std::vector<sim::Leaning>& leanings, Table& table,
                                                     Priced priced = Priced::answer);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ToldLeaning> {
  using Told = present::ToldLeaning;
  static constexpr std::string_view id = "leaning";
  static constexpr std::string_view doc = "An assumed figure of a machine that the answer leans on.";
  static constexpr auto fields =
      std::tuple(field("key", "of the figure, as in the machine's file: memory.L2.bandwidth", &Told::key),
                 field("change", "of the predicted time when the figure is a tenth off", unit::share, &Told::change),
                 field("source", "how the figure came about", &Told::source));
};

}  // namespace dculab

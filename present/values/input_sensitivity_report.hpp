// How a report names the assumed figures to which its answer is sensitive.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "present/output/field_json.hpp"
#include "sim/calibration/input_sensitivity.hpp"

namespace dculab::present {

// Whose times were predicted again: the answer's own, or those of steps behind an answer about requests, which may
// depend on other figures (phase_times of sim/serving/step_sample.hpp).
enum class Priced : std::uint8_t { answer, served_steps };

// "input sensitivity (change of the time when an assumed figure changes by 10 %): ...; each of the 12 others changes it
// by less than 1 %"; empty where nothing is assumed.
[[nodiscard]] std::string input_sensitivity_text(const sim::Machine& machine,
                                                 const std::vector<sim::InputSensitivity>& input_sensitivities,
                                                 Priced priced = Priced::answer);

// An assumed figure that is worth telling.
struct ReportedInputSensitivity {
  std::string key;
  double change = 0;
  std::string source;
};
[[nodiscard]] std::vector<ReportedInputSensitivity> reported_sensitivities(
    const sim::Machine& machine, const std::vector<sim::InputSensitivity>& input_sensitivities);

// Adds notes below a table: what moved along where the machine is redesigned, and the input sensitivities. Returns
// those worth telling.
[[nodiscard]] std::vector<ReportedInputSensitivity> note_input_sensitivities(
    const sim::Machine& machine, const std::vector<sim::InputSensitivity>& input_sensitivities, Table& table,
    Priced priced = Priced::answer);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedInputSensitivity> {
  using Self = present::ReportedInputSensitivity;
  static constexpr std::string_view id = "input_sensitivity";
  static constexpr std::string_view doc = "An assumed figure of a machine, and how sensitive the answer is to it.";
  static constexpr auto fields =
      std::tuple(field("key", "of the figure, as in the machine's file: memory.L2.bandwidth", &Self::key),
                 field("change", "of the predicted time when the figure is a tenth off", unit::share, &Self::change),
                 field("source", "how the figure came about", &Self::source));
};

}  // namespace dculab

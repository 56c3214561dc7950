#include "present/values/input_sensitivity_report.hpp"

#include <algorithm>

#include "present/values/machine_figures.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::present {
namespace {

constexpr const char* kPrior = "prior";

[[nodiscard]] bool is_told(const sim::InputSensitivity& sensitivity) {
  return sensitivity.change >= sim::kLeastSensitivity;
}

[[nodiscard]] std::string source_of(const sim::Machine& machine, const std::string& key) {
  const std::string* source = sim::source_of(machine, key);
  return source == nullptr ? kPrior : *source;
}

// How a figure came about that is not just assumed: " (prior)", " (inferred)", else nothing.
[[nodiscard]] std::string better_than_assumed(const std::string& source) {
  const std::string kind = source.substr(0, source.find(": "));
  return kind == kPrior || kind == "inferred" ? " (" + kind + ")" : "";
}

}  // namespace

std::string input_sensitivity_text(const sim::Machine& machine,
                                   const std::vector<sim::InputSensitivity>& input_sensitivities, Priced priced) {
  if (input_sensitivities.empty()) return "";
  std::string reported;
  for (const sim::InputSensitivity& sensitivity : input_sensitivities) {
    if (!is_told(sensitivity)) continue;
    const char* doubled = sensitivity.key.ends_with(".line") ? " (halved or doubled)" : "";
    reported += (reported.empty() ? "" : ", ") + sensitivity.key + doubled +
                better_than_assumed(source_of(machine, sensitivity.key)) + " " + percent(sensitivity.change, 2);
  }
  const auto others = std::count_if(input_sensitivities.begin(), input_sensitivities.end(),
                                    [](const auto& each) { return !is_told(each); });
  const std::string rest = std::to_string(others) +
                           (others == 1 ? " assumed figure changes" : " assumed figures change") + " it by less than " +
                           percent(sim::kLeastSensitivity, 1);
  const std::string of =
      priced == Priced::served_steps ? "input sensitivity of its steps, without transfers, " : "input sensitivity, ";
  const std::string what =
      priced == Priced::served_steps ? "mean change of steps with and without prefill" : "change of the time";
  if (reported.empty())
    return of + what + " by " + percent(sim::kSensitivityStep, 2) + " of an assumed figure: " + rest;
  return of + what + " by " + percent(sim::kSensitivityStep, 2) + " of an assumed figure: " + reported + "; " + rest;
}

std::vector<ReportedInputSensitivity> reported_sensitivities(
    const sim::Machine& machine, const std::vector<sim::InputSensitivity>& input_sensitivities) {
  std::vector<ReportedInputSensitivity> reported;
  for (const sim::InputSensitivity& sensitivity : input_sensitivities)
    if (is_told(sensitivity))
      reported.push_back({sensitivity.key, sensitivity.change, source_of(machine, sensitivity.key)});
  return reported;
}

std::vector<ReportedInputSensitivity> note_input_sensitivities(
    const sim::Machine& machine, const std::vector<sim::InputSensitivity>& input_sensitivities, Table& table,
    Priced priced) {
  const std::string text = input_sensitivity_text(machine, input_sensitivities, priced);
  if (machine.redesign) table.notes.push_back(machine.name + ": " + redesign_text(machine) + ".");
  if (!text.empty()) table.notes.push_back(machine.name + ": " + text + ".");
  return reported_sensitivities(machine, input_sensitivities);
}

}  // namespace dculab::present

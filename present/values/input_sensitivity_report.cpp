#include "present/values/input_sensitivity_report.hpp"

#include <algorithm>
#include <functional>

#include "present/values/machine_figures.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::present {
namespace {

constexpr const char* kPrior = "prior";

[[nodiscard]] bool is_reported(const sim::InputSensitivity& sensitivity) {
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
  std::string figures;
  for (const sim::InputSensitivity& sensitivity : input_sensitivities) {
    if (!is_reported(sensitivity)) continue;
    const char* doubled = sensitivity.key.ends_with(".line") ? " (halved or doubled)" : "";
    figures += (figures.empty() ? "" : ", ") + sensitivity.key +
               better_than_assumed(source_of(machine, sensitivity.key)) + " " + percent(sensitivity.change, 2) +
               doubled;
  }
  const std::string ten = percent(sim::kSensitivityStep, 2), least = percent(sim::kLeastSensitivity, 1);
  const bool steps = priced == Priced::served_steps;
  const std::string of = steps ? "input sensitivity of its steps, without transfers" : "input sensitivity";
  if (figures.empty())
    return of + ": none of the " + std::to_string(input_sensitivities.size()) +
           " assumed figures changes the time by " + least + " or more when it changes by " + ten;
  const auto others = std::ranges::count_if(input_sensitivities, std::not_fn(is_reported));
  const std::string rest = others == 0 ? ""
                           : others == 1
                               ? "; the other one changes it by less than " + least
                               : "; each of the " + std::to_string(others) + " others changes it by less than " + least;
  return of + (steps ? " (mean change of steps with and without prefill" : " (change of the time") +
         " when an assumed figure changes by " + ten + "): " + figures + rest;
}

std::vector<ReportedInputSensitivity> reported_sensitivities(
    const sim::Machine& machine, const std::vector<sim::InputSensitivity>& input_sensitivities) {
  std::vector<ReportedInputSensitivity> reported;
  for (const sim::InputSensitivity& sensitivity : input_sensitivities)
    if (is_reported(sensitivity))
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

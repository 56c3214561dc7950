#include "present/values/leaning_report.hpp"

#include <algorithm>

#include "present/values/machine_figures.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::present {
namespace {

constexpr const char* kPrior = "prior";

[[nodiscard]] bool is_told(const sim::Leaning& leaning) { return leaning.change >= sim::kLeastLeaning; }

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

std::string leaning_text(const sim::Machine& machine, const std::vector<sim::Leaning>& leanings, Priced priced) {
  if (leanings.empty()) return "";
  std::string told;
  for (const sim::Leaning& leaning : leanings) {
    if (!is_told(leaning)) continue;
    const char* doubled = leaning.key.ends_with(".line") ? " (halved or doubled)" : "";
    told += (told.empty() ? "" : ", ") + leaning.key + doubled + better_than_assumed(source_of(machine, leaning.key)) +
            " " + percent(leaning.change, 2);
  }
  const auto others = std::count_if(leanings.begin(), leanings.end(), [](const auto& each) { return !is_told(each); });
  const std::string rest = std::to_string(others) +
                           (others == 1 ? " assumed figure changes" : " assumed figures change") + " it by less than " +
                           percent(sim::kLeastLeaning, 1);
  const bool steps = priced == Priced::served_steps;
  const std::string who = steps ? "its steps, without transfers, lean on " : "leans on ";
  const std::string what = steps ? "the time of those with prefill and of those without, averaged," : "the time";
  if (told.empty()) return who + "no assumed figure: " + rest;
  return who + "assumed figures (change of " + what + " when one is " + percent(sim::kLeaningStep, 2) +
         " off): " + told + "; " + rest;
}

Json leaning_json(const sim::Machine& machine, const std::vector<sim::Leaning>& leanings) {
  Json json = Json::array();
  for (const sim::Leaning& leaning : leanings)
    if (is_told(leaning))
      json.push_back({{"key", leaning.key}, {"change", leaning.change}, {"source", source_of(machine, leaning.key)}});
  return json;
}

Json add_leanings(const sim::Machine& machine, const std::vector<sim::Leaning>& leanings, Report& report,
                  Priced priced) {
  const std::string text = leaning_text(machine, leanings, priced);
  report.json["machine_facts"][machine.name] = machine_facts(machine);
  std::vector<std::string>& notes = report.tables.back().notes;
  if (machine.redesign) notes.push_back(machine.name + ": " + redesign_text(machine) + ".");
  if (!text.empty()) notes.push_back(machine.name + ": " + text + ".");
  return leaning_json(machine, leanings);
}

Json add_leanings(const sim::Machine& machine, const std::optional<std::vector<sim::Leaning>>& leanings,
                  Report& report) {
  return leanings ? add_leanings(machine, *leanings, report) : Json::array();
}

}  // namespace dculab::present

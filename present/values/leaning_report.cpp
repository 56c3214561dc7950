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

std::vector<ToldLeaning> told_leanings(const sim::Machine& machine, const std::vector<sim::Leaning>& leanings) {
  std::vector<ToldLeaning> told;
  for (const sim::Leaning& leaning : leanings)
    if (is_told(leaning)) told.push_back({leaning.key, leaning.change, source_of(machine, leaning.key)});
  return told;
}

std::vector<ToldLeaning> note_leanings(const sim::Machine& machine, const std::vector<sim::Leaning>& leanings,
                                       Table& table, Priced priced) {
  const std::string text = leaning_text(machine, leanings, priced);
  if (machine.redesign) table.notes.push_back(machine.name + ": " + redesign_text(machine) + ".");
  if (!text.empty()) table.notes.push_back(machine.name + ": " + text + ".");
  return told_leanings(machine, leanings);
}

}  // namespace dculab::present

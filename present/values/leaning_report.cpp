#include "present/values/leaning_report.hpp"

#include <algorithm>

#include "present/output/field_json.hpp"
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

std::vector<ToldLeaning> note_leanings(const sim::Machine& machine, const sim::Prices& prices, Table& table,
                                       Priced priced) {
  const std::vector<sim::Leaning> leanings = sim::leanings(machine, prices);
  const std::string text = leaning_text(machine, leanings, priced);
  if (machine.redesign) table.notes.push_back(machine.name + ": " + redesign_text(machine) + ".");
  if (!text.empty()) table.notes.push_back(machine.name + ": " + text + ".");
  return told_leanings(machine, leanings);
}

sim::Prices recipe_prices(const std::vector<const sim::Recipe*>& recipes) {
  return [recipes](const sim::Machine& machine) {
    std::vector<Seconds> times;
    for (const sim::Recipe* recipe : recipes) times.push_back(sim::price_recipe(machine, *recipe));
    return times;
  };
}

std::vector<ToldLeaning> add_leanings(const sim::Machine& machine, const sim::Prices& prices, Report& report,
                                      Priced priced) {
  report.json["machine_facts"][machine.name] = machine_facts(machine);
  return note_leanings(machine, prices, report.tables.back(), priced);
}

std::vector<ToldLeaning> add_leanings(const sim::Machine& machine, const std::vector<const sim::Recipe*>& recipes,
                                      Report& report) {
  if (recipes.empty()) return {};
  return add_leanings(machine, recipe_prices(recipes), report);
}

}  // namespace dculab::present

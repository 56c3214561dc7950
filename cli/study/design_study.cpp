#include "cli/study/design_study.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "config/unit_text.hpp"
#include "present/values/leaning_report.hpp"
#include "present/values/machine_figures.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/figure.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/decide/designs.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::cli {
namespace {

constexpr std::string_view kMachine = "machine.";

// "128" for machine.compute_units at 2 x: what the figure has come to; other axes as they are written.
[[nodiscard]] std::string value_text(const config::Override& choice, const sim::Machine& machine) {
  const auto& [key, value] = choice;
  if (!key.starts_with(kMachine)) return value;
  const std::string figure = key.substr(kMachine.size());
  return present::figure_text(machine, figure, *sim::figure_value(machine, figure));
}

// "L2.size" for machine.memory.L2.size
[[nodiscard]] std::string title_of(const std::string& key) {
  constexpr std::string_view kLevels = "machine.memory.";
  return key.starts_with(kLevels) ? key.substr(kLevels.size()) : study::axis_title(key);
}

[[nodiscard]] std::string own_text(const std::string& key, const sim::Machine& machine) {
  if (!key.starts_with(kMachine)) return "";
  const std::string figure = key.substr(kMachine.size());
  const std::optional<double> value = sim::figure_value(machine, figure);
  return value ? present::figure_text(machine, figure, *value) : "";
}

// The table of one machine, and its JSON.
class DesignTable {
 public:
  DesignTable(const config::Scenario& scenario, const std::vector<study::Design>& designs, const sim::Machine& own)
      : own_(own) {
    table_.title = scenario.model.name + " on designs that start from " + own.name;
    for (const auto& [key, value] : designs.front().choices) {
      const std::string text = own_text(key, own);
      table_.columns.push_back(title_of(key) + (text.empty() ? "" : " (" + text + ")"));
    }
    for (const char* column : {"KV heads", "group", "block", "step", "90 % interval", "against the first", "bound"})
      table_.columns.emplace_back(column);
    json_ = {{"machine", own.name}, {"points", present::Json::array()}};
  }

  void add(const study::Design& design, study::DecidedDesign verdict) {
    if (decided_.empty()) first_ = verdict.seconds;
    std::vector<present::Cell>& row = table_.rows.emplace_back();
    for (const config::Override& choice : design.choices) row.emplace_back(value_text(choice, verdict.machine));
    row.emplace_back(std::to_string(verdict.choice.kv_heads));
    row.emplace_back(std::to_string(verdict.model.heads().group_size()));
    row.emplace_back(std::to_string(verdict.choice.block_size));
    row.emplace_back(config::short_text(verdict.seconds), verdict.seconds.value());
    row.emplace_back(config::short_text(verdict.trust.low) + " .. " + config::short_text(verdict.trust.high));
    const double change = verdict.seconds / first_ - 1;
    row.push_back(decided_.empty() ? present::Cell("", 0) : present::Cell(present::signed_percent(change, 2), change));
    row.emplace_back(verdict.bound);
    add_json(design, verdict);
    decided_.push_back(std::move(verdict));
  }

  // What moved along with the designs, how the choice moves, and what it leans on.
  void finish(present::Report& report) {
    const sim::Machine& last = decided_.back().machine;
    if (last.redesign) table_.notes.push_back(present::redesign_text(last) + ".");
    table_.notes.push_back(movement());
    const std::string basis = own_.calibration ? "calibrated on traces" : "not calibrated: data sheet and priors";
    table_.notes.push_back(own_.name + ": " + basis + ".");
    report.tables.push_back(std::move(table_));
    const StepPlan& plan = decided_.front().plan;
    const auto prices = [&plan](const sim::Machine& machine) {
      return std::vector<Seconds>{sim::price_step(machine, plan).seconds};
    };
    json_["leans_on"] = present::add_leanings(own_, prices, report);
    if (last.redesign) json_["redesign"] = present::redesign_json(last);
    report.json["designs"].push_back(std::move(json_));
  }

 private:
  void add_json(const study::Design& design, const study::DecidedDesign& verdict) {
    present::Json choices = present::Json::object(), figures = present::Json::object();
    for (const auto& [key, value] : design.choices) {
      choices[key] = value;
      if (key.starts_with(kMachine))
        figures[key.substr(kMachine.size())] = *sim::figure_value(verdict.machine, key.substr(kMachine.size()));
    }
    json_["points"].push_back({{"choices", choices},
                               {"figures", figures},
                               {"num_key_value_heads", verdict.choice.kv_heads},
                               {"group_size", verdict.model.heads().group_size()},
                               {"block_size", verdict.choice.block_size},
                               {"step_seconds", verdict.seconds.value()},
                               {"interval_seconds", {verdict.trust.low.value(), verdict.trust.high.value()}},
                               {"basis", sim::name(verdict.trust.basis)},
                               {"bound", verdict.bound}});
  }

  [[nodiscard]] std::string movement() const {
    const sim::Choice first = decided_.front().choice;
    std::set<sim::Choice> others;
    std::size_t moved = 0;
    for (const study::DecidedDesign& verdict : decided_) {
      if (verdict.choice == first) continue;
      ++moved;
      others.insert(verdict.choice);
    }
    std::string text = "→ " + study::heads_text(first.kv_heads) + ", block " + std::to_string(first.block_size) +
                       " in " + std::to_string(decided_.size() - moved) + " of " + std::to_string(decided_.size()) +
                       " designs, the first among them";
    for (const sim::Choice& other : others)
      text += "; elsewhere " + study::heads_text(other.kv_heads) + ", block " + std::to_string(other.block_size);
    const auto by_time = [](const study::DecidedDesign& a, const study::DecidedDesign& b) {
      return a.seconds < b.seconds;
    };
    const auto [fastest, slowest] = std::ranges::minmax_element(decided_, by_time);
    return text + "; a step takes " + config::short_text(fastest->seconds) + " to " +
           config::short_text(slowest->seconds);
  }

  const sim::Machine& own_;
  present::Table table_;
  present::Json json_;
  std::vector<study::DecidedDesign> decided_;
  Seconds first_;
};

}  // namespace

void study_designs(const config::Scenario& scenario, present::Report& report) {
  const std::vector<config::SweepPoint> points = config::sweep_points(scenario);
  const std::vector<study::Design> designs = study::designs_of(scenario, points);
  for (const std::string& name : scenario.machines) {
    const sim::Machine own = study::resolve_machine(scenario, name);
    DesignTable table(scenario, designs, own);
    for (const study::Design& design : designs) {
      study::DecidedDesign verdict = study::decide_design(design, study::resolve_machine(*design.points.front(), name));
      present::add_warnings(report, verdict.refused);
      table.add(design, std::move(verdict));
    }
    table.finish(report);
  }
}

}  // namespace dculab::cli

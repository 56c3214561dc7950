#include "cli/study/design_study.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cli/output/axis_title.hpp"
#include "cli/output/leaning_report.hpp"
#include "cli/output/machine_figures.hpp"
#include "cli/study/predicted_study.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/figure.hpp"
#include "sim/memory/capacity.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/decide/step_choices.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"

namespace dculab::cli {
namespace {

constexpr std::string_view kMachine = "machine.";

[[nodiscard]] bool is_chosen(const config::Scenario& scenario, const std::string& key) {
  return std::ranges::find(scenario.choose, key) != scenario.choose.end();
}

// The points of one design: they differ in what is to be chosen.
struct Design {
  std::vector<config::Override> choices;  // of the axes that are not chosen
  std::vector<const config::Scenario*> points;
};

// What a design comes to.
struct DecidedDesign {
  sim::Machine machine;
  ModelShape model;
  sim::Choice choice;
  StepPlan plan;
  sim::Confidence trust;
  Seconds seconds;
  std::string bound;
  std::vector<std::string> refused;  // study::refused_kv
};

[[nodiscard]] std::vector<Design> designs_of(const config::Scenario& scenario,
                                             const std::vector<config::SweepPoint>& points) {
  std::vector<Design> designs;
  std::map<std::vector<config::Override>, std::size_t> places;
  for (const config::SweepPoint& point : points) {
    std::vector<config::Override> choices;
    for (const config::Override& each : point.choices)
      if (!is_chosen(scenario, each.first)) choices.push_back(each);
    const auto [place, is_new] = places.try_emplace(choices, designs.size());
    if (is_new) designs.push_back({std::move(choices), {}});
    designs[place->second].points.push_back(&point.scenario);
  }
  return designs;
}

[[nodiscard]] study::StudyPoint point_of(const config::Scenario& scenario, const sim::Machine& machine) {
  study::StudyPoint point;
  const ModelShape whole = study::resolve_model(scenario);
  point.model = study::resolve_part(scenario, whole, machine);
  point.options = study::resolve_options(scenario, point.model, machine);
  point.batch = study::resolve_batch(scenario.workload, point.model, point.options);
  point.choice = {whole.heads().num_key_value_heads, point.options.block_size};
  return point;
}

// The choice of a design: the most KV heads that are hardly slower than the fastest, with the block size that a study
// of it alone would recommend for them.
[[nodiscard]] DecidedDesign decide(const Design& design, sim::Machine machine) {
  std::map<sim::Choice, std::pair<study::StudyPoint, StepPlan>> points;
  std::vector<study::PricedChoice> prices;
  study::AllowedHeads any;  // what is chosen is free
  sim::StepPrice price;
  for (const config::Scenario* scenario : design.points) {
    study::StudyPoint point = point_of(*scenario, machine);
    StepPlan plan = plan_step(point.model, point.options, point.batch);
    sim::price_step(machine, plan, price);
    const auto time = [&plan](const sim::Machine& moved) { return sim::price_step(moved, plan).seconds; };
    const int context = point.batch.sequences.front().context_tokens();
    const std::int64_t room = sim::capacity(machine, point.model, point.options, context).max_sequences;
    prices.push_back({.choice = point.choice,
                      .seconds = price.seconds,
                      .shifts = sim::prior_shifts(machine, time),
                      .fits = room >= static_cast<std::int64_t>(point.batch.sequences.size())});
    any.kv_heads.push_back(point.choice.kv_heads);
    points.insert_or_assign(point.choice, std::pair(std::move(point), std::move(plan)));
  }
  const sim::Choice best =
      study::decide_steps(study::over_workloads(prices), 0, machine.stack.defaults.block_size, any)->choice;
  auto& [point, plan] = points.at(best);
  sim::price_step(machine, plan, price);
  const sim::Confidence trust = sim::confidence(machine, point.model, point.options, plan, price.seconds);
  std::string bound = step_bound(price, machine);
  std::vector<std::string> refused = study::refused_kv(machine, point.model, point.options);
  return {std::move(machine), point.model,       best, std::move(plan), trust, price.seconds,
          std::move(bound),   std::move(refused)};
}

// "128" for machine.compute_units at 2 x: what the figure has come to; other axes as they are written.
[[nodiscard]] std::string value_text(const config::Override& choice, const sim::Machine& machine) {
  const auto& [key, value] = choice;
  if (!key.starts_with(kMachine)) return value;
  const std::string figure = key.substr(kMachine.size());
  return figure_text(machine, figure, *sim::figure_value(machine, figure));
}

// "L2.size" for machine.memory.L2.size
[[nodiscard]] std::string title_of(const std::string& key) {
  constexpr std::string_view kLevels = "machine.memory.";
  return key.starts_with(kLevels) ? key.substr(kLevels.size()) : axis_title(key);
}

[[nodiscard]] std::string own_text(const std::string& key, const sim::Machine& machine) {
  if (!key.starts_with(kMachine)) return "";
  const std::string figure = key.substr(kMachine.size());
  const std::optional<double> value = sim::figure_value(machine, figure);
  return value ? figure_text(machine, figure, *value) : "";
}

// The table of one machine, and its JSON.
class DesignTable {
 public:
  DesignTable(const config::Scenario& scenario, const std::vector<Design>& designs, const sim::Machine& own)
      : own_(own) {
    table_.title = scenario.model.name + " on designs that start from " + own.name;
    for (const auto& [key, value] : designs.front().choices) {
      const std::string text = own_text(key, own);
      table_.columns.push_back(title_of(key) + (text.empty() ? "" : " (" + text + ")"));
    }
    for (const char* column : {"KV heads", "group", "block", "step", "90 % interval", "against the first", "bound"})
      table_.columns.emplace_back(column);
    json_ = {{"machine", own.name}, {"points", Json::array()}};
  }

  void add(const Design& design, DecidedDesign verdict) {
    if (decided_.empty()) first_ = verdict.seconds;
    std::vector<Cell>& row = table_.rows.emplace_back();
    for (const config::Override& choice : design.choices) row.emplace_back(value_text(choice, verdict.machine));
    row.emplace_back(std::to_string(verdict.choice.kv_heads));
    row.emplace_back(std::to_string(verdict.model.heads().group_size()));
    row.emplace_back(std::to_string(verdict.choice.block_size));
    row.emplace_back(config::short_text(verdict.seconds), verdict.seconds.value());
    row.emplace_back(config::short_text(verdict.trust.low) + " .. " + config::short_text(verdict.trust.high));
    const double change = verdict.seconds / first_ - 1;
    row.push_back(decided_.empty() ? Cell("", 0) : Cell(signed_percent(change, 2), change));
    row.emplace_back(verdict.bound);
    add_json(design, verdict);
    decided_.push_back(std::move(verdict));
  }

  // What moved along with the designs, how the choice moves, and what it leans on.
  void finish(Report& report) {
    const sim::Machine& last = decided_.back().machine;
    if (last.redesign) table_.notes.push_back(redesign_text(last) + ".");
    table_.notes.push_back(movement());
    const std::string basis = own_.calibration ? "calibrated on traces" : "not calibrated: data sheet and priors";
    table_.notes.push_back(own_.name + ": " + basis + ".");
    report.tables.push_back(std::move(table_));
    const StepPlan& plan = decided_.front().plan;
    const auto prices = [&plan](const sim::Machine& machine) {
      return std::vector<Seconds>{sim::price_step(machine, plan).seconds};
    };
    json_["leans_on"] = add_leanings(own_, prices, report);
    if (last.redesign) json_["redesign"] = redesign_json(last);
    report.json["designs"].push_back(std::move(json_));
  }

 private:
  void add_json(const Design& design, const DecidedDesign& verdict) {
    Json choices = Json::object(), figures = Json::object();
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
    for (const DecidedDesign& verdict : decided_) {
      if (verdict.choice == first) continue;
      ++moved;
      others.insert(verdict.choice);
    }
    std::string text = "→ " + study::heads_text(first.kv_heads) + ", block " + std::to_string(first.block_size) +
                       " in " + std::to_string(decided_.size() - moved) + " of " + std::to_string(decided_.size()) +
                       " designs, the first among them";
    for (const sim::Choice& other : others)
      text += "; elsewhere " + study::heads_text(other.kv_heads) + ", block " + std::to_string(other.block_size);
    const auto by_time = [](const DecidedDesign& a, const DecidedDesign& b) { return a.seconds < b.seconds; };
    const auto [fastest, slowest] = std::ranges::minmax_element(decided_, by_time);
    return text + "; a step takes " + config::short_text(fastest->seconds) + " to " +
           config::short_text(slowest->seconds);
  }

  const sim::Machine& own_;
  Table table_;
  Json json_;
  std::vector<DecidedDesign> decided_;
  Seconds first_;
};

}  // namespace

void refuse_undecided(const config::Scenario& scenario) {
  const auto refuse = [&scenario](bool asked, const std::string& what) {
    if (asked) throw InputError(scenario.file, "choose: " + what);
  };
  for (const std::string& key : scenario.choose)
    refuse(std::ranges::none_of(scenario.sweep, [&key](const auto& axis) { return axis.key == key; }),
           key + " is not swept; give its values under sweep, or leave it out");
  refuse(scenario.sweep.size() <= scenario.choose.size(),
         "nothing but that is swept, of which a study tells the best; "
         "sweep a figure such as machine.compute_units too");
  refuse(scenario.document.find("objective") != nullptr || !scenario.pareto.empty() || !scenario.constraints.empty(),
         "does not go with objective, pareto and constraints, which make a search");
  refuse(scenario.compare || scenario.accuracy, "does not go with compare and accuracy");
  for (const config::SweepAxis& axis : scenario.sweep) {
    refuse(axis.draws.has_value(), axis.key + " is drawn, which makes a search; list its values");
    refuse(axis.key == "machine", "list machines under `machines`, each of which has a table");
  }
}

void study_designs(const config::Scenario& scenario, Report& report) {
  const std::vector<config::SweepPoint> points = config::sweep_points(scenario);
  const std::vector<Design> designs = designs_of(scenario, points);
  for (const std::string& name : scenario.machines) {
    const sim::Machine own = study::resolve_machine(scenario, name);
    DesignTable table(scenario, designs, own);
    for (const Design& design : designs) {
      DecidedDesign verdict = decide(design, study::resolve_machine(*design.points.front(), name));
      add_warnings(report, verdict.refused);
      table.add(design, std::move(verdict));
    }
    table.finish(report);
  }
}

}  // namespace dculab::cli

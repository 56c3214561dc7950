#include "study/decide/designs.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/memory/capacity.hpp"
#include "study/decide/step_choices.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/study_points.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] bool is_chosen(const config::Scenario& scenario, const std::string& key) {
  return std::ranges::find(scenario.choose, key) != scenario.choose.end();
}

[[nodiscard]] StudyPoint point_of(const config::Scenario& scenario, const sim::Machine& machine) {
  StudyPoint point;
  const ModelShape whole = resolve_model(scenario);
  point.model = resolve_part(scenario, whole, machine);
  point.options = resolve_options(scenario, point.model, machine);
  point.batch = resolve_batch(scenario.workload, point.model, point.options);
  point.choice = {whole.heads().num_key_value_heads, point.options.block_size};
  return point;
}

}  // namespace

std::vector<Design> designs_of(const config::Scenario& scenario, const std::vector<config::SweepPoint>& points) {
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

DecidedDesign decide_design(const Design& design, sim::Machine machine) {
  std::map<sim::Choice, std::pair<StudyPoint, StepPlan>> points;
  std::vector<PricedChoice> prices;
  AllowedHeads any;  // what is chosen is free
  sim::StepPrice price;
  for (const config::Scenario* scenario : design.points) {
    StudyPoint point = point_of(*scenario, machine);
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
  const sim::Choice best = decide_steps(over_workloads(prices), 0, machine.stack.defaults.block_size, any)->choice;
  auto& [point, plan] = points.at(best);
  sim::price_step(machine, plan, price);
  const sim::Confidence trust = sim::confidence(machine, point.model, point.options, plan, price.seconds);
  std::string bound = sim::step_bound(price, machine);
  std::vector<std::string> refused = refused_kv(machine, point.model, point.options);
  return {design.choices, std::move(machine), point.model,       best, std::move(plan), trust,
          price.seconds,  std::move(bound),   std::move(refused)};
}

std::vector<DesignStudy> study_designs(const config::Scenario& scenario, const std::vector<std::string>& machines) {
  const std::vector<config::SweepPoint> points = config::sweep_points(scenario);
  const std::vector<Design> designs = designs_of(scenario, points);
  std::vector<DesignStudy> studies;
  for (const std::string& name : machines) {
    DesignStudy study{.own = resolve_machine(scenario, name), .designs = {}, .input_sensitivities = {}};
    for (const Design& design : designs)
      study.designs.push_back(decide_design(design, resolve_machine(*design.points.front(), name)));
    study.input_sensitivities =
        sim::input_sensitivities(study.own, [&plan = study.designs.front().plan](const sim::Machine& machine) {
          return std::vector<Seconds>{sim::price_step(machine, plan).seconds};
        });
    studies.push_back(std::move(study));
  }
  return studies;
}

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

}  // namespace dculab::study

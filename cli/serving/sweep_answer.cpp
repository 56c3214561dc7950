#include "cli/serving/sweep_answer.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "present/study/comparison_table.hpp"
#include "present/values/verdict_text.hpp"
#include "study/decide/simulated_choices.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::cli {

void add_choice(const std::vector<study::SimulatedPoint>& asked, const std::vector<study::Simulation>& all,
                const config::Scenario& scenario, int threads, present::Report& report) {
  const config::Objective& objective = scenario.objective;
  const std::optional<std::size_t> chosen = study::best(all, objective);
  const std::string goal = (objective.goal == config::Goal::maximize ? "largest " : "smallest ") + objective.metric;
  report.heading.push_back(chosen ? goal + ": " + study::label(all[*chosen])
                                  : "no point of the sweep meets objective.subject_to");
  if (!chosen) return;
  report.json["best"].push_back(report.json["simulations"].size() + *chosen);
  const bool heads_swept =
      std::ranges::find(scenario.sweep, "model.num_key_value_heads", &config::SweepAxis::key) != scenario.sweep.end();
  const int own = heads_swept ? study::resolve_model(scenario).heads().num_key_value_heads : 0;
  const auto has_own = [own](const study::Simulation& each) {
    return each.server.model.heads().num_key_value_heads == own;
  };
  const bool keeps_own = std::ranges::any_of(all, has_own);
  std::set<std::string> machines;
  for (const study::Simulation& each : all) {
    if (!machines.insert(each.machine).second) continue;
    const auto found = study::best(all, objective, [&](const study::Simulation& other) {
      return other.machine == each.machine && (!keeps_own || has_own(other));
    });
    if (!found) continue;
    if (const auto blocks = study::block_size_verdict(asked, all, *found, objective, threads))
      present::add_block_sizes(each.machine, all[*found].server.model.heads().num_key_value_heads, *blocks, report);
  }
  if (heads_swept)
    report.heading.push_back(
        "→ no number of KV heads is recommended, for accuracy was not weighed: the points are a "
        "front of speed against KV heads kept");
}

void add_front(const std::vector<study::Simulation>& all, const config::Scenario& scenario, present::Report& report) {
  const std::vector<config::Aim>& aims = scenario.pareto;
  std::string told;
  for (const config::Aim& aim : aims)
    told +=
        (told.empty() ? "" : ", ") + std::string(aim.goal == config::Goal::minimize ? "small " : "large ") + aim.metric;
  const bool limited = !scenario.objective.subject_to.empty();
  report.heading.push_back((limited ? "of what meets objective.subject_to none is better in " : "none is better in ") +
                           told + " than:");
  const std::size_t before = report.json["simulations"].size();
  present::Json front = present::Json::array();
  for (const std::size_t index : study::pareto_front(all, aims, scenario.objective)) {
    std::string line = "  " + study::label(all[index]);
    for (const config::Aim& aim : aims)
      line += ", " + aim.metric + " " + present::figure_cell(aim.metric, all[index].figures.at(aim.metric)).text;
    report.heading.push_back(line);
    front.push_back(before + index);
  }
  report.json["pareto"].push_back(front);
}

}  // namespace dculab::cli

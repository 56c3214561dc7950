#include "cli/serving/sweep_answer.hpp"

#include <optional>
#include <string>

#include "cli/output/verdict_text.hpp"
#include "cli/serving/block_size_verdict.hpp"
#include "cli/serving/serving_report.hpp"

namespace dculab::cli {

void add_choice(const std::vector<SimulatedPoint>& asked, const std::vector<Simulation>& all,
                const config::Objective& objective, int threads, Report& report) {
  const std::optional<std::size_t> chosen = best(all, objective);
  const std::string goal = (objective.goal == config::Goal::maximize ? "largest " : "smallest ") + objective.metric;
  report.heading.push_back(chosen ? goal + ": " + label(all[*chosen])
                                  : "no point of the sweep meets objective.subject_to");
  if (!chosen) return;
  report.json["best"].push_back(report.json["simulations"].size() + *chosen);
  const auto blocks = block_size_verdict(asked, all, *chosen, objective, threads);
  if (!blocks) return;
  report.heading.push_back("→ " + all[*chosen].machine + ": block size " +
                           blocks->evaluated[blocks->verdict.chosen].value + "; " +
                           costs_text(blocks->evaluated, blocks->verdict));
  report.json["block_sizes"].push_back(costs_json(blocks->evaluated, blocks->verdict));
}

void add_front(const std::vector<Simulation>& all, const config::Scenario& scenario, Report& report) {
  const std::vector<config::Aim>& aims = scenario.pareto;
  std::string told;
  for (const config::Aim& aim : aims)
    told +=
        (told.empty() ? "" : ", ") + std::string(aim.goal == config::Goal::minimize ? "small " : "large ") + aim.metric;
  const bool limited = !scenario.objective.subject_to.empty();
  report.heading.push_back((limited ? "of what meets objective.subject_to none is better in " : "none is better in ") +
                           told + " than:");
  const std::size_t before = report.json["simulations"].size();
  Json front = Json::array();
  for (const std::size_t index : pareto_front(all, aims, scenario.objective)) {
    std::string line = "  " + label(all[index]);
    for (const config::Aim& aim : aims)
      line += ", " + aim.metric + " " + figure_cell(aim.metric, all[index].figures.at(aim.metric)).text;
    report.heading.push_back(line);
    front.push_back(before + index);
  }
  report.json["pareto"].push_back(front);
}

}  // namespace dculab::cli

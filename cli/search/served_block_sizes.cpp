#include "cli/search/served_block_sizes.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/output/verdict_text.hpp"
#include "cli/search/search_point.hpp"
#include "core/error.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/decide/drawn_requests.hpp"
#include "study/decide/step_choices.hpp"

namespace dculab::cli {
namespace {

// By block size, points that have what `best` has of all other axes.
[[nodiscard]] std::map<int, std::uint64_t> points_by_block(const SweepSpace& space, std::uint64_t best) {
  const auto axis = std::ranges::find(space.axes(), "kv_cache.block_size", &config::SweepAxis::key);
  std::map<int, std::uint64_t> points;
  if (axis == space.axes().end() || axis->draws) return points;
  const auto at = static_cast<std::size_t>(axis - space.axes().begin());
  std::vector<std::uint64_t> wanted, found;
  config::positions_at(space.axes(), best, wanted);
  for (std::uint64_t point = 0; point < space.size(); ++point) {
    config::positions_at(space.axes(), point, found);
    const std::uint64_t value = found[at];
    found[at] = wanted[at];
    if (found == wanted) points.emplace(std::stoi(axis->value(value)), point);
  }
  return points;
}

// More is better; 0 where there can be no such server, or where it does not meet the constraints.
[[nodiscard]] double figure_of(const SweepSpace& space, PointPricer& points, CasePricer& pricer, std::uint64_t point,
                               std::size_t draw) {
  try {
    SweepCase asked = points.at(point);
    asked.requests = study::draws_of(asked.requests)[draw];
    const CaseFigures& priced = pricer.price(asked, asked.machine);
    const config::Objective& objective = space.scenario().objective;
    const double figure = priced.figures[space.metric(objective.metric)];
    if (!meets_constraints(space, asked, priced.figures) || !(figure > 0)) return 0;
    return objective.goal == config::Goal::maximize ? figure : 1 / figure;
  } catch (const InputError&) {
    return 0;
  }
}

}  // namespace

void report_served_block_sizes(const SweepSpace& space, const KeptPoint& best, int threads, Report& report) {
  if (!space.is_served()) return;
  const std::map<int, std::uint64_t> points = points_by_block(space, best.number);
  if (points.size() < 2) return;
  PointPricer first(space);
  const SweepCase& asked = first.at(best.number);
  std::vector<int> swept;
  for (const auto& [size, point] : points) swept.push_back(size);
  std::vector<std::string> names;
  std::vector<std::uint64_t> numbers;
  for (const int size : study::by_preference(swept, asked.machine.stack.defaults.block_size)) {
    names.push_back(std::to_string(size));
    numbers.push_back(points.at(size));
  }
  const auto make_figure = [&]() -> study::DrawnFigure {
    return [&space, &numbers, points = PointPricer(space), pricer = CasePricer()](std::size_t choice,
                                                                                  std::size_t draw) mutable {
      return figure_of(space, points, pricer, numbers[choice], draw);
    };
  };
  const auto blocks = study::decide_over_draws(names, study::draws_of(asked.requests).size(), make_figure, threads);
  if (!blocks) return;
  report.heading.push_back("→ " + asked.machine.name + ", " + study::heads_text(asked.model.num_key_value_heads) +
                           ": block size " + blocks->evaluated[blocks->verdict.chosen].value + "; " +
                           costs_text(blocks->evaluated, blocks->verdict));
  report.json["block_sizes"].push_back(costs_json(blocks->evaluated, blocks->verdict));
  report.json["block_sizes"].back()["machine"] = asked.machine.name;
}

}  // namespace dculab::cli

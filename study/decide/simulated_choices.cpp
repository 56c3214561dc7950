#include "study/decide/simulated_choices.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "sim/study/pareto.hpp"
#include "study/decide/objective.hpp"
#include "study/decide/step_choices.hpp"
#include "study/evaluate/serving_figures.hpp"
#include "study/scenario/request_workload.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] FigureOf figures_of(const Simulation& simulation) {
  return [&figures = simulation.figures](const std::string& metric) {
    const auto figure = figures.find(metric);
    return figure == figures.end() ? std::numeric_limits<double>::quiet_NaN() : figure->second;
  };
}

// The choices of a sweep but for the block size.
[[nodiscard]] std::vector<config::Override> other_choices(const Simulation& simulation) {
  std::vector<config::Override> others = simulation.choices;
  std::erase_if(others, [](const config::Override& choice) { return choice.first == "kv_cache.block_size"; });
  return others;
}

// The points that differ from `best` in their block size at most, the preferred size first.
[[nodiscard]] std::vector<std::size_t> rivals_of(const std::vector<Simulation>& all, std::size_t best) {
  std::map<int, std::size_t> of_size;
  std::vector<int> sizes;
  for (std::size_t index = 0; index < all.size(); ++index)
    if (all[index].machine == all[best].machine && other_choices(all[index]) == other_choices(all[best]) &&
        of_size.try_emplace(all[index].server.options.block_size, index).second)
      sizes.push_back(all[index].server.options.block_size);
  std::vector<std::size_t> rivals;
  for (const int size : by_preference(sizes, all[best].server.machine.stack.defaults.block_size))
    rivals.push_back(of_size.at(size));
  return rivals;
}

[[nodiscard]] double merit_of(const std::map<std::string, double>& figures, const config::Objective& objective) {
  return merit(objective, [&figures](const std::string& metric) {
    const auto found = figures.find(metric);
    return found == figures.end() ? 0 : found->second;
  });
}

}  // namespace

std::optional<std::size_t> best(const std::vector<Simulation>& all, const config::Objective& objective,
                                const std::function<bool(const Simulation&)>& among) {
  std::vector<std::size_t> indices;
  for (std::size_t index = 0; index < all.size(); ++index)
    if (!among || among(all[index])) indices.push_back(index);
  const auto found =
      best_point(objective, indices.size(), [&](std::size_t point) { return figures_of(all[indices[point]]); });
  return found ? std::optional(indices[*found]) : std::nullopt;
}

std::vector<std::size_t> pareto_front(const std::vector<Simulation>& all, const std::vector<config::Aim>& aims,
                                      const config::Objective& objective) {
  sim::ParetoFront front;
  for (std::size_t index = 0; index < all.size(); ++index) {
    if (!is_admissible(objective, figures_of(all[index]))) continue;
    const std::vector<double> weighed = costs(aims, figures_of(all[index]));
    if (!weighed.empty()) front.offer(index, weighed);
  }
  std::vector<std::size_t> numbers;
  for (const sim::ParetoFront::Point& point : front.points()) numbers.push_back(point.number);
  return numbers;
}

std::optional<DrawnVerdict> block_size_verdict(const std::vector<SimulatedPoint>& asked,
                                               const std::vector<Simulation>& all, std::size_t best,
                                               const config::Objective& objective, int threads) {
  const std::vector<std::size_t> rivals = rivals_of(all, best);
  if (rivals.size() < 2) return std::nullopt;
  const auto draws_for = [&](std::size_t rival) {
    return draws_of(resolve_requests(asked[rival].point->scenario, all[rival].server.model));
  };
  const auto figure = [&](std::size_t place, std::size_t draw) {
    const std::size_t rival = rivals[place];
    const Simulation& known = all[rival];
    if (draw == 0) return merit_of(known.figures, objective);
    const sim::ServingRun run = sim::simulate(known.server, draws_for(rival)[draw], known.slo);
    return merit_of(run_figures(known.server, run), objective);
  };
  std::vector<std::string> sizes;
  for (const std::size_t rival : rivals) sizes.push_back(std::to_string(all[rival].server.options.block_size));
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return decide_over_draws(
      sizes, draws_for(rivals.front()).size(), [&figure] { return figure; }, threads > 0 ? threads : cores);
}

}  // namespace dculab::study

#include "cli/serving/block_size_verdict.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "cli/scenario/objective.hpp"
#include "cli/serving/measured_serving.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/decide/drawn_requests.hpp"
#include "study/decide/step_choices.hpp"
#include "study/scenario/request_workload.hpp"

namespace dculab::cli {
namespace {

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
  for (const int size : study::by_preference(sizes, all[best].server.machine.stack.defaults.block_size))
    rivals.push_back(of_size.at(size));
  return rivals;
}

// More is better; 0 where the limits are not met.
[[nodiscard]] double figure_of(const std::map<std::string, double>& figures, const config::Objective& objective) {
  const auto of = [&figures](const std::string& metric) {
    const auto found = figures.find(metric);
    return found == figures.end() ? 0 : found->second;
  };
  const double figure = of(objective.metric);
  if (!is_admissible(objective, of) || !(figure > 0)) return 0;
  return objective.goal == config::Goal::maximize ? figure : 1 / figure;
}

}  // namespace

std::optional<BlockSizeVerdict> block_size_verdict(const std::vector<SimulatedPoint>& asked,
                                                   const std::vector<Simulation>& all, std::size_t best,
                                                   const config::Objective& objective, int threads) {
  const std::vector<std::size_t> rivals = rivals_of(all, best);
  if (rivals.size() < 2) return std::nullopt;
  const auto draws_for = [&](std::size_t rival) {
    return study::draws_of(study::resolve_requests(asked[rival].point->scenario, all[rival].server.model));
  };
  const std::size_t draws = draws_for(rivals.front()).size();
  std::vector<std::vector<double>> figures(rivals.size(), std::vector<double>(draws));
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&](std::uint64_t chunk) {
      const std::size_t place = chunk / draws, draw = chunk % draws, rival = rivals[place];
      const Simulation& known = all[rival];
      if (draw == 0) {
        figures[place][draw] = figure_of(known.figures, objective);
        return std::string();
      }
      const sim::ServingRun run = sim::simulate(known.server, draws_for(rival)[draw], known.slo);
      figures[place][draw] = figure_of(compared_figures(run.metrics, run.num_steps), objective);
      return std::string();
    };
  };
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  sim::work_in_order({0, rivals.size() * draws}, threads > 0 ? threads : cores, make_worker,
                     [](std::uint64_t, const std::string&) {});
  BlockSizeVerdict result;
  for (std::size_t place = 0; place < rivals.size(); ++place)
    result.evaluated.push_back(
        study::over_draws(std::to_string(all[rivals[place]].server.options.block_size), figures[place]));
  const auto verdict = study::decide(result.evaluated, {.resolution = study::kServedResolution, .given_up = 0});
  if (!verdict) return std::nullopt;
  result.verdict = *verdict;
  return result;
}

}  // namespace dculab::cli

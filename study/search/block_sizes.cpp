#include "study/search/block_sizes.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "study/decide/objective.hpp"
#include "study/decide/step_choices.hpp"
#include "study/scenario/resolve.hpp"
#include "study/search/point_pricer.hpp"

namespace dculab::study {
namespace {

constexpr const char* kBlockSizeKey = "kv_cache.block_size";
constexpr const char* kKvHeadsKey = "model.num_key_value_heads";

[[nodiscard]] std::optional<std::size_t> axis_of(const SweepSpace& space, const std::string& key) {
  const auto axis = std::ranges::find(space.axes(), key, &config::SweepAxis::key);
  if (axis == space.axes().end() || axis->draws) return std::nullopt;
  return static_cast<std::size_t>(axis - space.axes().begin());
}

// Points that have what `base` has of all axes but one, by their value of that one.
[[nodiscard]] std::map<std::string, std::uint64_t> points_along(const SweepSpace& space, std::uint64_t base,
                                                                std::size_t axis) {
  std::map<std::string, std::uint64_t> points;
  std::vector<std::uint64_t> wanted, found;
  config::positions_at(space.axes(), base, wanted);
  for (std::uint64_t point = 0; point < space.size(); ++point) {
    config::positions_at(space.axes(), point, found);
    const std::uint64_t value = found[axis];
    found[axis] = wanted[axis];
    if (found == wanted) points.emplace(space.axes()[axis].value(value), point);
  }
  return points;
}

// The best point of each machine, with the model's own KV heads where others are swept, too.
[[nodiscard]] std::vector<std::uint64_t> best_by_machine(const SweepSpace& space, const SearchSummary& summary) {
  std::vector<std::uint64_t> points;
  const auto machines = axis_of(space, "machine");
  for (const BestOfValue& each : summary.best_of_values())
    if (machines && each.axis == *machines && each.best) points.push_back(each.best->number);
  if (points.empty()) points.push_back(summary.best().front().number);
  const auto heads = axis_of(space, kKvHeadsKey);
  if (!heads) return points;
  const std::string own = std::to_string(resolve_model(space.scenario()).heads().num_key_value_heads);
  for (std::uint64_t& point : points) {
    const auto along = points_along(space, point, *heads);
    if (const auto found = along.find(own); found != along.end()) point = found->second;
  }
  return points;
}

// More is better; 0 where there can be no such server, or where it does not meet the constraints.
[[nodiscard]] double merit_of(const SweepSpace& space, PointPricer& points, CasePricer& pricer, std::uint64_t point,
                              std::size_t draw) {
  try {
    SweepCase asked = points.at(point);
    asked.requests = draws_of(asked.requests)[draw];
    const CaseFigures& priced = pricer.price(asked, asked.machine);
    if (!meets_constraints(space, asked, priced.figures)) return 0;
    return merit(space.scenario().objective,
                 [&](const std::string& metric) { return priced.figures[space.metric(metric)]; });
  } catch (const InputError&) {
    return 0;
  }
}

[[nodiscard]] std::optional<ServedBlockSizes> decide_along(const SweepSpace& space, std::uint64_t best,
                                                           std::size_t axis, int threads) {
  const std::map<std::string, std::uint64_t> points = points_along(space, best, axis);
  PointPricer first(space);
  const SweepCase& asked = first.at(best);
  std::vector<int> swept;
  for (const auto& [size, point] : points) swept.push_back(std::stoi(size));
  std::vector<std::string> sizes;
  for (const int size : by_preference(swept, asked.machine.stack.defaults.block_size))
    sizes.push_back(std::to_string(size));
  const auto make_figure = [&]() -> DrawnFigure {
    return [&, pricing = PointPricer(space), pricer = CasePricer()](std::size_t choice, std::size_t draw) mutable {
      return merit_of(space, pricing, pricer, points.at(sizes[choice]), draw);
    };
  };
  auto blocks = decide_over_draws(sizes, draws_of(asked.requests).size(), make_figure, threads);
  if (!blocks) return std::nullopt;
  return ServedBlockSizes{asked.machine.name, asked.model.heads().num_key_value_heads, *std::move(blocks)};
}

}  // namespace

std::vector<ServedBlockSizes> served_block_sizes(const SweepSpace& space, const SearchSummary& summary, int threads) {
  const auto axis = axis_of(space, kBlockSizeKey);
  if (!space.is_served() || !axis || space.axes()[*axis].size() < 2 || summary.best().empty()) return {};
  std::vector<ServedBlockSizes> decided;
  for (const std::uint64_t best : best_by_machine(space, summary))
    if (auto sizes = decide_along(space, best, *axis, threads)) decided.push_back(*std::move(sizes));
  return decided;
}

}  // namespace dculab::study

#include "study/search/search_summary.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "study/decide/objective.hpp"

namespace dculab::study {
namespace {

constexpr std::size_t kUnreported = std::numeric_limits<std::size_t>::max();

}  // namespace

SearchSummary::SearchSummary(const SweepSpace& space)
    : space_(space), metric_(space.metric(space.scenario().objective.metric)) {
  for (std::size_t index = 0; index < space.axes().size(); ++index) {
    const config::SweepAxis& axis = space.axes()[index];
    const bool reported = !axis.draws && axis.size() > 1 && axis.size() <= kMostValues;
    first_value_.push_back(reported ? best_of_values_.size() : kUnreported);
    if (reported)
      for (const std::string& value : axis.values) best_of_values_.push_back({index, value, std::nullopt});
  }
  choose_pair_axes();
}

void SearchSummary::choose_pair_axes() {
  const auto axis_of = [this](std::string_view key) {
    return static_cast<std::size_t>(std::ranges::find(space_.axes(), key, &config::SweepAxis::key) -
                                    space_.axes().begin());
  };
  const std::size_t heads = axis_of("model.num_key_value_heads"), block = axis_of("kv_cache.block_size");
  for (const std::size_t axis : {heads, block})
    if (axis == space_.axes().size() || first_value_[axis] == kUnreported) return;
  const std::size_t pairs = space_.axes()[heads].values.size() * space_.axes()[block].values.size();
  if (pairs > kMostPairs) return;
  pair_axes_ = {heads, block};
  best_of_pairs_.resize(pairs);
}

bool SearchSummary::better(const KeptPoint& a, const KeptPoint& b) const {
  const config::Goal goal = space_.scenario().objective.goal;
  return cost(goal, a.figures[metric_]) < cost(goal, b.figures[metric_]);
}

void SearchSummary::add(std::uint64_t begin, const config::SearchChunk& chunk) {
  if (refusal_.empty()) refusal_ = chunk.refusal;
  for (std::size_t index = 0; index < chunk.points.size(); ++index) {
    const config::SearchPoint& point = chunk.points[index];
    ++counts_[static_cast<std::size_t>(point.outcome)];
    if (point.outcome == config::Outcome::refused) continue;
    const bool meets = point.outcome == config::Outcome::met, few = space_.is_served() && space_.size() <= kAll;
    if (!meets && !few) continue;
    const auto figures = chunk.figures(index);
    const KeptPoint kept{begin + index, {figures.begin(), figures.end()}, chunk.bounds[point.bound]};
    if (meets) keep(kept);
    if (few) all_.push_back({kept, meets});
  }
}

void SearchSummary::keep(const KeptPoint& point) {
  if (best_.size() < kBest || better(point, best_.back())) {
    const auto place = std::upper_bound(best_.begin(), best_.end(), point,
                                        [this](const KeptPoint& a, const KeptPoint& b) { return better(a, b); });
    best_.insert(place, point);
    if (best_.size() > kBest) best_.pop_back();
  }
  keep_of_values(point);
  const auto figure_of = [&](const std::string& metric) { return point.figures[space_.metric(metric)]; };
  const std::vector<double> weighed = costs(space_.scenario().pareto, figure_of);
  if (weighed.empty()) return;
  if (front_.offer(point.number, weighed)) on_front_.push_back(point);
  if (on_front_.size() > 2 * front_.size() + kBest) on_front_ = front();
}

void SearchSummary::keep_of_values(const KeptPoint& point) {
  if (best_of_values_.empty()) return;
  config::positions_at(space_.axes(), point.number, positions_);
  const auto keep_better = [&](std::optional<KeptPoint>& best) {
    if (!best || better(point, *best)) best = point;
  };
  for (std::size_t axis = 0; axis < positions_.size(); ++axis)
    if (first_value_[axis] != kUnreported) keep_better(best_of_values_[first_value_[axis] + positions_[axis]].best);
  if (!pair_axes_) return;
  const auto& [rows, columns] = *pair_axes_;
  keep_better(best_of_pairs_[positions_[rows] * space_.axes()[columns].values.size() + positions_[columns]]);
}

std::vector<KeptPoint> SearchSummary::best_of_pairs() const {
  std::vector<KeptPoint> points;
  for (const std::optional<KeptPoint>& best : best_of_pairs_)
    if (best) points.push_back(*best);
  return points;
}

std::vector<KeptPoint> SearchSummary::front() const {
  std::vector<KeptPoint> points;
  for (const sim::ParetoFront::Point& each : front_.points())
    points.push_back(*std::ranges::find(on_front_, each.number, &KeptPoint::number));
  return points;
}

std::vector<std::uint64_t> SearchSummary::contenders() const {
  std::set<std::uint64_t> numbers;
  if (space_.size() <= kAll)
    for (std::uint64_t number = 0; number < space_.size(); ++number) numbers.insert(number);
  for (const KeptPoint& point : best_) numbers.insert(point.number);
  for (const BestOfValue& each : best_of_values_)
    if (each.best) numbers.insert(each.best->number);
  return {numbers.begin(), numbers.end()};
}

}  // namespace dculab::study

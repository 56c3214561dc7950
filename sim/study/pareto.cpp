#include "sim/study/pareto.hpp"

#include <algorithm>
#include <utility>

namespace dculab::sim {
namespace {

[[nodiscard]] bool no_worse(std::span<const double> a, std::span<const double> b) {
  return std::ranges::equal(a, b, [](double left, double right) { return left <= right; });
}

}  // namespace

bool ParetoFront::offer(std::uint64_t number, std::span<const double> figures) {
  const auto beaten_by =
      std::ranges::find_if(front_, [&](const Point& point) { return no_worse(point.figures, figures); });
  if (beaten_by != front_.end()) {
    // What has beaten one point often beats the next.
    std::swap(front_.front(), *beaten_by);
    return false;
  }
  std::erase_if(front_, [&](const Point& point) { return no_worse(figures, point.figures); });
  front_.push_back({number, {figures.begin(), figures.end()}});
  return true;
}

std::vector<ParetoFront::Point> ParetoFront::points() const {
  std::vector<Point> sorted = front_;
  std::ranges::sort(sorted, {}, [](const Point& point) { return std::pair(point.figures, point.number); });
  return sorted;
}

}  // namespace dculab::sim

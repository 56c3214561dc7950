// The front of points that arrive one by one is that of comparing all with all.
#include "sim/study/pareto.hpp"

#include <algorithm>
#include <random>

#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

using Figures = std::vector<double>;

bool beats(const Figures& a, const Figures& b) {
  bool better = false;
  for (std::size_t index = 0; index < a.size(); ++index) {
    if (a[index] > b[index]) return false;
    better = better || a[index] < b[index];
  }
  return better;
}

// The points that no other beats; of equal ones the first.
std::vector<std::uint64_t> brute_force(const std::vector<Figures>& points) {
  std::vector<std::uint64_t> front;
  for (std::size_t index = 0; index < points.size(); ++index) {
    bool stays = true;
    for (std::size_t other = 0; other < points.size(); ++other)
      if (beats(points[other], points[index]) || (other < index && points[other] == points[index])) stays = false;
    if (stays) front.push_back(index);
  }
  return front;
}

TEST_CASE("the Pareto front is the one that brute force finds") {
  std::mt19937 random(7);
  for (const std::size_t dimensions : {1, 2, 3, 4})
    for (const int levels : {2, 10, 100000}) {
      std::vector<Figures> points(300, Figures(dimensions));
      for (Figures& point : points)
        for (double& figure : point) figure = static_cast<double>(random() % static_cast<unsigned>(levels));
      ParetoFront front;
      for (std::size_t index = 0; index < points.size(); ++index) front.offer(index, points[index]);
      std::vector<std::uint64_t> numbers;
      for (const ParetoFront::Point& point : front.points()) numbers.push_back(point.number);
      std::ranges::sort(numbers);
      INFO(dimensions << " figures of " << levels << " values");
      CHECK(numbers == brute_force(points));
    }
}

}  // namespace
}  // namespace dculab::sim::test

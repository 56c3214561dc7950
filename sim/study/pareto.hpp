// Which points no other beats: the Pareto front of points that arrive one after the other.
//
// A point is beaten when another is no worse in any figure and better in one. Of points with equal figures the one that
// came first stands for all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dculab::sim {

class ParetoFront {
 public:
  struct Point {
    std::uint64_t number = 0;
    std::vector<double> figures;
  };

  // Of every figure less is better: negate those that are to be large. False when another point beats it.
  bool offer(std::uint64_t number, std::span<const double> figures);

  // By the first figure, then the next ones.
  [[nodiscard]] std::vector<Point> points() const;
  [[nodiscard]] std::size_t size() const { return front_.size(); }

 private:
  std::vector<Point> front_;  // those that beat others first
};

}  // namespace dculab::sim

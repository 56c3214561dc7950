// How far predictions hold after a fit to published points: grouped conformal residuals.
//
// Each source, program on a vendor, machine and vendor is left out of the fit in turn, to first order. The 90 %
// quantile of |log error| over the rows of a vendor and kind of price is the factor of a prediction as far from what
// was seen. What was left out weighs alike, however many rows it has: a new one is like the others, not like most rows.
// Where a vendor has too few rows, all vendors' count; what is farther is never narrower. Source: Dunn, Wasserman and
// Ramdas 2022, "Distribution-free prediction sets for two-layer hierarchical models"; with a handful of groups no
// guarantee holds, only what docs/reference/accuracy.md counts.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// What a prediction does not share with the points of the fit.
enum class Distance : std::uint8_t { source, program, machine, vendor };
inline constexpr std::array kDistances{Distance::source, Distance::program, Distance::machine, Distance::vendor};

// Two releases of one program on one device differ by so much: no interval is narrower.
inline constexpr double kLeastFactor = 1.05;

class IntervalTable {
 public:
  // `weight`: of the row among those that were left out with it.
  void add(Distance distance, const std::string& vendor, PriceKind kind, double log_error, double weight);

  [[nodiscard]] double factor(Distance distance, const std::string& vendor, PriceKind kind) const;

  // |error| in the middle of the vendor's rows, each weighing alike; nothing without any.
  [[nodiscard]] std::optional<double> median_error(Distance distance, const std::string& vendor) const;

 private:
  struct Score {
    double log_error, weight;
  };
  [[nodiscard]] static double quantile(std::vector<Score> scores);
  [[nodiscard]] std::optional<double> factor_at(Distance distance, const std::string& vendor, PriceKind kind) const;

  std::map<std::pair<Distance, PriceKind>, std::map<std::string, std::vector<Score>>> scores_;  // by vendor
};

}  // namespace dculab::sim

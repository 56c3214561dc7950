// How far predictions hold after a fit to published points: grouped conformal residuals.
//
// Each source, stack and program on a vendor, machine and vendor is left out of the fit in turn, by one Gauss-Newton
// step. Of |log error| over the n rows of a vendor and kind of price the one of rank ceil(0.9 (n + 1)) is the factor of
// a prediction as far from what was seen. A kind with fewer than 10 rows from a vendor is treated as another vendor's.
// Where a vendor has too few rows, all vendors' count; what is farther is never narrower. With a handful of groups no
// guarantee holds, only what docs/reference/accuracy.md counts. Source: Lei et al. 2018, "Distribution-free predictive
// inference for regression".
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
enum class Distance : std::uint8_t { source, stack, program, machine, vendor };
inline constexpr std::array kDistances{Distance::source, Distance::stack, Distance::program, Distance::machine,
                                       Distance::vendor};

// Two releases of one program on one device differ by so much: no interval is narrower.
inline constexpr double kLeastFactor = 1.05;

class IntervalTable {
 public:
  void add(Distance distance, const std::string& vendor, PriceKind kind, double log_error);

  [[nodiscard]] double factor(Distance distance, const std::string& vendor, PriceKind kind) const;

  // |error| in the middle of the vendor's rows; nothing without any.
  [[nodiscard]] std::optional<double> median_error(Distance distance, const std::string& vendor) const;

 private:
  // Whether enough rows of that kind are the vendor's.
  [[nodiscard]] bool has_seen(const std::string& vendor, PriceKind kind) const;
  [[nodiscard]] std::optional<double> factor_at(Distance distance, const std::string& vendor, PriceKind kind) const;

  std::map<std::pair<Distance, PriceKind>, std::map<std::string, std::vector<double>>> errors_;  // |log|, by vendor
};

}  // namespace dculab::sim

// Quantiles of log errors by distance, vendor and kind, counted by hand.
#include "sim/study/point_intervals.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

namespace dculab::sim {
namespace {

void add_rows(IntervalTable& table, Distance distance, const char* vendor, PriceKind kind, double first) {
  for (int row = 0; row < 10; ++row) table.add(distance, vendor, kind, first + 0.01 * row);
}

TEST_CASE("the factor is the row of rank 0.9 (n + 1) of what was left out of a vendor and kind") {
  IntervalTable table;
  add_rows(table, Distance::source, "amd", PriceKind::product, 0.10);
  add_rows(table, Distance::source, "amd", PriceKind::step, 0.70);  // another kind
  add_rows(table, Distance::source, "hygon", PriceKind::product, -0.50);
  CHECK(table.factor(Distance::source, "amd", PriceKind::product) == Approx(std::exp(0.19)));    // the tenth of ten
  CHECK(table.factor(Distance::source, "hygon", PriceKind::product) == Approx(std::exp(0.50)));  // sizes 0.41 to 0.50
  add_rows(table, Distance::source, "amd", PriceKind::product, 0.0);
  CHECK(table.factor(Distance::source, "amd", PriceKind::product) == Approx(std::exp(0.18)));  // the 19th of 20
  CHECK(table.median_error(Distance::source, "hygon") == Approx(std::exp(0.46) - 1));
  CHECK_FALSE(table.median_error(Distance::machine, "hygon"));
}

TEST_CASE("a vendor with few rows borrows those of the others, a kind with few those of all kinds") {
  IntervalTable table;
  add_rows(table, Distance::source, "amd", PriceKind::product, 0.10);
  table.add(Distance::source, "hygon", PriceKind::product, 0.2);
  CHECK(table.factor(Distance::source, "hygon", PriceKind::product) ==
        Approx(std::exp(0.20)));  // the eleventh of eleven
  CHECK(table.factor(Distance::source, "hygon", PriceKind::exchange) == Approx(std::exp(0.20)));
}

TEST_CASE("a kind that was hardly seen of a vendor is as far as another vendor") {
  IntervalTable table;
  add_rows(table, Distance::source, "amd", PriceKind::product, 0.10);
  add_rows(table, Distance::vendor, "amd", PriceKind::product, 0.60);
  table.add(Distance::source, "hygon", PriceKind::product, 0.2);
  CHECK(table.factor(Distance::source, "amd", PriceKind::product) == Approx(std::exp(0.19)));
  CHECK(table.factor(Distance::source, "hygon", PriceKind::product) == Approx(std::exp(0.69)));
}

TEST_CASE("what is farther is never narrower, and nothing is narrower than releases of a program differ") {
  IntervalTable table;
  add_rows(table, Distance::source, "amd", PriceKind::step, 0.30);
  add_rows(table, Distance::program, "amd", PriceKind::step, 0.0);
  CHECK(table.factor(Distance::program, "amd", PriceKind::step) ==
        table.factor(Distance::source, "amd", PriceKind::step));
  IntervalTable exact;
  for (int row = 0; row < 20; ++row) exact.add(Distance::source, "amd", PriceKind::step, 0);
  CHECK(exact.factor(Distance::source, "amd", PriceKind::step) == kLeastFactor);
  CHECK(IntervalTable().factor(Distance::source, "amd", PriceKind::step) > 2);
}

}  // namespace
}  // namespace dculab::sim

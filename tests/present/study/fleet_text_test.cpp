// Sentences about a load that a fleet serves.
#include "present/study/fleet_text.hpp"

#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

TEST_CASE("a share below the bound does not read as the bound") {
  CHECK(share_text(0.899, 0.9) == "89.9 %");
  CHECK(share_text(0.9, 0.9) == "90 %");
  CHECK(share_text(0.93, 0.9) == "93 %");
  CHECK(share_text(1, 0.9) == "100 %");
}

TEST_CASE("what speaks against relying on a load is told by what is missed") {
  ServiceLevel slo;
  slo.tpot = Seconds(0.06);
  slo.share = 0.9;
  study::ExpectedService expected;
  expected.requests_per_second = {5, 5, 5};
  CHECK(doubt_text(expected, slo).empty());
  expected.slo_attainment = {1, 0.5, 1};
  CHECK(doubt_text(expected, slo) == "at the slow end of the interval too few requests meet the SLO");
  expected.slo_attainment = {0.7, 0.5, 1};
  CHECK(doubt_text(expected, slo) == "too few requests meet the SLO");
  slo.tpot.reset();
  expected.arriving = 5;
  expected.slowest_rate = 4;
  CHECK(doubt_text(expected, slo) ==
        "at the slow end of the interval a replica serves 4.00 requests/s at most, and 5.00 arrive");
  expected.slowest_rate = 6;
  CHECK(doubt_text(expected, slo).empty());
  expected.slowest_rate.reset();  // of pools
  expected.requests_per_second = {5, 3, 5};
  CHECK(doubt_text(expected, slo) == "at the slow end of the interval only 3.00 of 5.00 requests/s are served");
}

}  // namespace
}  // namespace dculab::present

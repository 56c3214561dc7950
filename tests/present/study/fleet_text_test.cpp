// Sentences about a load that a fleet serves.
#include "present/study/fleet_text.hpp"

#include "present/study/fleet_report.hpp"
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

TEST_CASE("a deployment that is given serves its load or does not") {
  study::Recommendation result;
  result.serving.load.output_tokens = 100;
  result.batched_tokens.candidates.emplace_back().full_requests_per_second = 1.2;
  ServiceLevel slo;
  CHECK(given_text(result, slo) == " serves at most 1.20 requests/s (120 tokens/s)");
  result.expected.emplace();
  result.offered_requests_per_second = 0.6;
  CHECK(given_text(result, slo) == " serves 0.600 of at most 1.20 requests/s (120 tokens/s)");
  slo.ttft = Seconds(1);
  slo.share = 0.9;
  CHECK_THAT(given_text(result, slo), ContainsSubstring(" serves 0.600 requests/s within the SLO, and at most 1.20"));
  result.expected->slo_attainment.value = 0.899;
  CHECK_THAT(given_text(result, slo), ContainsSubstring("but only 89.9 % of the requests meet the SLO"));
  result.replicas = 2;
  result.offered_requests_per_second = 3;
  CHECK(given_text(result, slo) ==
        ": each of 2 replicas does not serve 3.00 requests/s, but at most 1.20 requests/s (120 tokens/s)");
}

}  // namespace
}  // namespace dculab::present

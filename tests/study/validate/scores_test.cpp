// Errors of predictions, over all rows and by group.
#include "study/validate/scores.hpp"

#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

ScoredRow row(const std::string& kind, const std::string& unit, double measured, double predicted, double low,
              double high) {
  ScoredRow row;
  row.kind = kind;
  row.machine = "z100";
  row.unit = unit;
  row.measured = measured;
  row.predicted = predicted;
  row.low = low;
  row.high = high;
  return row;
}

TEST_CASE("a rate that is too high is a time that is too short") {
  CHECK(row("decode", "s", 2, 1, 0, 3).time_error(1) == Approx(-0.5));
  CHECK(row("decode", "tokens/s", 1, 2, 0, 3).time_error(2) == Approx(-0.5));
}

TEST_CASE("rows are summed up over all and by each name that they have") {
  const ScoreSummary summary = summarize({row("decode", "s", 1, 1.5, 0.9, 1.6), row("decode", "s", 1, 0.9, 0.8, 0.95),
                                          row("prefill", "s", 1, 1.1, 1.05, 1.2)});
  CHECK(summary.all.error.count == 3);
  CHECK(summary.all.error.median_abs_error == Approx(0.1));
  CHECK(summary.all.inside == Approx(1.0 / 3));
  REQUIRE(summary.groups.size() == 3);  // no model, no software
  CHECK(summary.groups[0].by == "kind");
  CHECK(summary.groups[0].name == "decode");
  CHECK(summary.groups[0].score.error.count == 2);
  CHECK(summary.groups[0].score.inside == Approx(0.5));
  CHECK(summary.groups[1].name == "prefill");
  CHECK(summary.groups[2].by == "machine");
  CHECK(summary.groups[2].score.error.count == 3);
}

TEST_CASE("no rows, no errors") {
  const ScoreSummary summary = summarize({});
  CHECK(summary.all.error.count == 0);
  CHECK(summary.all.inside == 0);
  CHECK(summary.groups.empty());
}

}  // namespace
}  // namespace dculab::study

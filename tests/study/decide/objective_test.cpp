// What an objective admits and prefers.
#include "study/decide/objective.hpp"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] FigureOf from(const std::map<std::string, double>& figures) {
  return [&figures](const std::string& metric) {
    const auto found = figures.find(metric);
    return found == figures.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  };
}

const std::map<std::string, double> kFigures{{"goodput", 4}, {"ttft_p99", 0.5}};

TEST_CASE("a point that lacks what is limited, or breaks its limit, is worth nothing") {
  config::Objective objective{config::Goal::maximize, "goodput", {}};
  CHECK(merit(objective, from(kFigures)) == 4);
  objective.subject_to = {{"ttft_p99", config::Comparison::at_most, 0.5}};
  CHECK(merit(objective, from(kFigures)) == 4);
  objective.subject_to.front().value = 0.4;
  CHECK_FALSE(is_admissible(objective, from(kFigures)));
  CHECK(merit(objective, from(kFigures)) == 0);
  objective.subject_to = {{"tpot_p50", config::Comparison::at_most, 1}};
  CHECK_FALSE(is_admissible(objective, from(kFigures)));
  objective = {config::Goal::minimize, "ttft_p99", {{"goodput", config::Comparison::at_least, 4}}};
  CHECK(merit(objective, from(kFigures)) == 2);
  CHECK(cost(config::Goal::minimize, 3) < cost(config::Goal::minimize, 4));
  CHECK(cost(config::Goal::maximize, 4) < cost(config::Goal::maximize, 3));
}

TEST_CASE("a front weighs points that have all it asks for") {
  const config::Aim up{config::Goal::maximize, "goodput"}, down{config::Goal::minimize, "ttft_p99"};
  CHECK(costs({up, down}, from(kFigures)) == std::vector<double>{-4, 0.5});
  CHECK(costs({up, {config::Goal::minimize, "tpot_p50"}}, from(kFigures)).empty());
}

}  // namespace
}  // namespace dculab::study

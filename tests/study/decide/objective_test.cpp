// What an objective admits and prefers, and the figures of a serving run that it goes by.
#include "study/decide/objective.hpp"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "study/decide/serving_figures.hpp"
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

TEST_CASE("the best point is the largest or the smallest that is admitted, and of equals the first") {
  const std::vector<std::map<std::string, double>> points{{{"goodput", 4}, {"ttft_p99", 0.5}},
                                                          {{"goodput", 6}, {"ttft_p99", 0.9}},
                                                          {{"goodput", 6}, {"ttft_p99", 0.4}},
                                                          {{"ttft_p99", 0.1}}};
  const auto best_by = [&points](const config::Objective& objective) {
    return best_point(objective, points.size(), [&points](std::size_t point) { return from(points[point]); });
  };
  config::Objective objective{config::Goal::maximize, "goodput", {}};
  CHECK(best_by(objective) == 1);
  objective.subject_to = {{"ttft_p99", config::Comparison::at_most, 0.5}};
  CHECK(best_by(objective) == 2);
  objective.subject_to.front().value = 0.2;  // which only the point without goodput meets
  CHECK_FALSE(best_by(objective));
  CHECK(best_by({config::Goal::minimize, "ttft_p99", {}}) == 3);
  CHECK_FALSE(best_by({config::Goal::minimize, "tpot_p50", {}}));
}

TEST_CASE("a figure of 0 is the best of what is to be small, and is taken for want of others where it is to be large") {
  const std::vector<std::map<std::string, double>> points{
      {{"goodput", 0}, {"ttft_p99", 3}}, {{"goodput", 0}, {"ttft_p99", 2}}, {{"goodput", 1}, {"ttft_p99", 1}}};
  const auto best_of = [&points](config::Goal goal, std::size_t count) {
    return best_point({goal, "goodput", {}}, count, [&points](std::size_t point) { return from(points[point]); });
  };
  CHECK(best_of(config::Goal::maximize, 3) == 2);
  CHECK(best_of(config::Goal::maximize, 2) == 0);
  CHECK(best_of(config::Goal::minimize, 3) == 0);
  CHECK_FALSE(best_of(config::Goal::minimize, 0));
}

TEST_CASE("a front weighs points that have all it asks for") {
  const config::Aim up{config::Goal::maximize, "goodput"}, down{config::Goal::minimize, "ttft_p99"};
  CHECK(costs({up, down}, from(kFigures)) == std::vector<double>{-4, 0.5});
  CHECK(costs({up, {config::Goal::minimize, "tpot_p50"}}, from(kFigures)).empty());
}

TEST_CASE("figures of served requests are rates over the whole run") {
  ServiceLevel level;
  level.ttft = Seconds(1.5);
  ServingMetrics metrics(level);
  for (const double first : {1.0, 2.0, 1.0, 2.0}) {
    Request request;
    request.prompt_token_ids = {1, 2, 3};
    Sequence sequence(std::move(request));
    sequence.tokens.insert(sequence.tokens.end(), {7, 8});
    sequence.token_times = {Seconds(first), Seconds(first + 1)};
    metrics.add(sequence);
  }
  const std::map<std::string, double> figures = compared_figures(metrics, 6);
  CHECK(figures.at("total_time") == Approx(3));
  CHECK(figures.at("requests_per_second") == Approx(4.0 / 3));
  CHECK(figures.at("output_tokens_per_second") == Approx(8.0 / 3));
  CHECK(figures.at("tokens_per_second") == Approx(20.0 / 3));
  CHECK(figures.at("goodput") == Approx(2.0 / 3));
  CHECK(figures.at("share_within_slo") == 0.5);
  CHECK(figures.at("ttft_mean") == Approx(1.5).epsilon(1e-3));
  CHECK(figures.at("steps") == 6);
  CHECK(figures.at("output_tokens") == 8);
  CHECK_FALSE(figures.contains("slowdown_p50"));
}

}  // namespace
}  // namespace dculab::study

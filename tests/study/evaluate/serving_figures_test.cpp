// The figures of a serving run, by the names that objectives have.
#include "study/evaluate/serving_figures.hpp"

#include <map>
#include <string>
#include <utility>

#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

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

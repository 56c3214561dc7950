#include "core/serving_metrics.hpp"

#include <algorithm>
#include <random>

#include "tests/support/catch.hpp"

using namespace dculab;

TEST_CASE("a sketch's quantiles are those of the sorted values, to 0.1 %", "[serving_metrics]") {
  std::mt19937_64 random(7);
  for (const int count : {1, 2, 3, 10, 999, 20000}) {
    QuantileSketch sketch;
    std::vector<double> values;
    for (int index = 0; index < count; ++index) {
      values.push_back(index % 50 == 7 ? 0 : std::exp(std::uniform_real_distribution(-9.0, 4.0)(random)));
      sketch.add(Seconds(values.back()));
    }
    std::ranges::sort(values);
    CHECK(sketch.count() == count);
    CHECK(sketch.smallest().value() == values.front());
    CHECK(sketch.largest().value() == values.back());
    for (const double q : {0.0, 0.1, 0.5, 0.9, 0.99, 1.0}) {
      const double rank = q * (count - 1);
      const auto below = static_cast<std::size_t>(rank);
      const double above = values[std::min(below + 1, values.size() - 1)];
      const double exact = values[below] + (above - values[below]) * (rank - static_cast<double>(below));
      CHECK_THAT(sketch.quantile(q).value(), WithinRel(exact, 1.001e-3) || WithinAbs(exact, 1e-12));
    }
  }
}

namespace {

Sequence served(double arrival, const std::vector<double>& token_times, int prompt_tokens) {
  Request request;
  request.arrival = Seconds(arrival);
  request.prompt_token_ids.assign(static_cast<std::size_t>(prompt_tokens), 1);
  Sequence sequence(std::move(request));
  for (const double time : token_times) {
    sequence.tokens.push_back(2);
    sequence.token_times.push_back(Seconds(time));
  }
  return sequence;
}

}  // namespace

TEST_CASE("latencies, throughput and goodput of three requests, by hand", "[serving_metrics]") {
  ServingMetrics metrics({.ttft = Seconds(1.5), .tpot = Seconds(0.25), .latency = {}});
  metrics.add(served(1, {2, 2.2, 2.4}, 10));  // TTFT 1, TPOT 0.2
  metrics.add(served(0, {2, 2.1}, 20));       // TTFT 2: too late
  metrics.add(served(4, {5, 5.1, 5.7}, 30));  // TTFT 1, TPOT 0.35: too slow
  metrics.add(served(9, {10}, 40));           // TTFT 1, one token has no TPOT
  CHECK(metrics.requests() == 4);
  CHECK(metrics.requests_within_objective() == 2);
  CHECK(metrics.prompt_tokens() == 100);
  CHECK(metrics.output_tokens() == 9);
  CHECK_THAT(metrics.duration().value(), WithinRel(10.0, 1e-12));
  CHECK_THAT(metrics.ttft().mean().value(), WithinRel(1.25, 1e-12));
  CHECK(metrics.tpot().count() == 3);
  CHECK_THAT(metrics.tpot().mean().value(), WithinRel((0.2 + 0.1 + 0.35) / 3, 1e-12));
  CHECK(metrics.itl().count() == 5);
  CHECK_THAT(metrics.itl().largest().value(), WithinRel(0.6, 1e-12));
  CHECK_THAT(metrics.latency().largest().value(), WithinRel(2.1, 1e-12));
}

TEST_CASE("a queue grew where somebody waited for a good part of the time in which requests came", "[serving_metrics]") {
  ServingMetrics all_at_once, spread, late;
  for (const double wait : {1.0, 9.0}) all_at_once.add(served(0, {wait}, 10));
  CHECK_FALSE(all_at_once.queue_grew());
  for (const double arrival : {0.0, 10.0}) spread.add(served(arrival, {arrival + 2}, 10));
  CHECK_FALSE(spread.queue_grew());
  for (const double arrival : {0.0, 10.0}) late.add(served(arrival, {arrival + 3}, 10));
  CHECK(late.queue_grew());
}

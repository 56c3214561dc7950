// What a scenario without a sweep costs: figures, changes against a baseline, and what the engine refuses of it.
#include "study/evaluate/variant_cost.hpp"

#include <algorithm>

#include "config/scenario_document.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

VariantCost cost_with(const std::string& more) {
  const config::Scenario scenario =
      config::read_scenario("s.yaml", config::parse_value("s.yaml",
                                                          "schema: dculab/scenario/1\nquestion: q\nmodel: llama-3-8b\n"
                                                          "machine: z100\n" +
                                                              more));
  return cost_of(scenario, resolve_machine(scenario, "z100"));
}

const std::string kLongRequests = "workload: {requests: 8, prompt_tokens: 200, output_tokens: 50}\n";

TEST_CASE("a step's rate follows from its time, and a batch without room is predicted all the same") {
  const VariantCost four = cost_with("workload: {phase: decode, batch: 4, context_tokens: 1000}\n");
  CHECK(four.batch == 4);
  CHECK(four.has_room);
  CHECK(four.figures.at("tokens_per_second") == Approx(4 / four.figures.at("step_time")));
  const VariantCost many = cost_with("workload: {phase: decode, batch: 4000, context_tokens: 1000}\n");
  CHECK_FALSE(many.has_room);
  CHECK(many.fits());
  CHECK(many.figures.at("step_time") > four.figures.at("step_time"));
}

TEST_CASE("a run's rates are those of all its requests, and its shares are its time") {
  const VariantCost run = cost_with(kLongRequests);
  const double time = run.figures.at("total_time");
  CHECK(run.batch == 8);
  CHECK(run.batch_limit == "requests");
  CHECK(run.figures.at("requests_per_second") == Approx(8 / time));
  CHECK(run.figures.at("output_tokens_per_second") == Approx(8 * 50 / time));
  CHECK(run.shared_time().value() == Approx(time));
  CHECK(attention_share(run) > 0);
  CHECK(attention_share(run) < 1);
}

TEST_CASE("a change is against the baseline, and the intervals of figure and change hold them") {
  const VariantCost baseline = cost_with(kLongRequests);
  const VariantCost variant = cost_with("kv_cache: {block_size: 1}\n" + kLongRequests);
  for (const char* metric : {"total_time", "output_tokens_per_second"}) {
    CAPTURE(metric);
    const double change = change_of(metric, variant, baseline);
    CHECK(change == Approx(variant.figures.at(metric) / baseline.figures.at(metric) - 1));
    const FigureInterval interval = interval_of(variant, metric);
    CHECK(interval.low < variant.figures.at(metric));
    CHECK(interval.high > variant.figures.at(metric));
    const auto of_change = interval_of_change(baseline, variant, metric);
    REQUIRE(of_change);
    CHECK(of_change->low <= change);
    CHECK(of_change->high >= change);
    // Most of what is uncertain is so in both.
    CHECK(of_change->high - of_change->low < interval.high / interval.low - 1);
  }
}

TEST_CASE("what the engine refuses of a KV cache is asked of the devices of each pool, not of the whole model") {
  const auto refuses_division = [](const std::string& tensor_parallel_size) {
    const VariantCost cost =
        cost_with("weights: f16\nkv_cache: {dtype: kvquant2}\n" + kLongRequests +
                  "deployment: {prefill_replicas: 1, decode_replicas: 1, kv_transfer: {bandwidth: 10 GB/s}, "
                  "tensor_parallel_size: " +
                  tensor_parallel_size + "}\n");
    CHECK(cost.service.has_value());
    return std::ranges::count_if(cost.refused, [](const std::string& reason) {
      return reason.find("looks at K and V of all heads") != std::string::npos;
    });
  };
  CHECK(refuses_division("1") == 0);
  CHECK(refuses_division("4") == 1);  // once, although both pools have it
}

}  // namespace
}  // namespace dculab::study

// The grid of steps that `bench` measures. No time is judged.
#include "study/measure/step_grid.hpp"

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "study/scenario/locate.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

GridStep step_of(const std::string& model, const std::string& kv_cache, const std::string& workload) {
  return {config::read_scenario(
              "s.yaml",
              config::parse_value("s.yaml", "schema: dculab/scenario/1\nquestion: q\nmodel: " + model +
                                                "\nmachine: host\nkv_cache: " + kv_cache + "\nworkload: " + workload)),
          "f16"};
}

StepGrid small_grid() {
  return {.model = "dculab-tiny",
          .random_weights = "bf16",
          .steps = {step_of("dculab-tiny", "{block_size: 16}", "{phase: decode, batch: 2, context_tokens: 64}"),
                    step_of("{name: dculab-tiny, num_key_value_heads: 2}",
                            "{block_size: 8, retention: sinks, sink_tokens: 4, window_tokens: 28}",
                            "{phase: prefill, batch: 1, context_tokens: 16}")},
          .options = {.threads = 1, .repeats = 1, .warm_up = 0}};
}

TEST_CASE("a grid's steps are named by their place in it, and have the formats of the weights that are loaded") {
  ModelShape loaded = engine::read_model_shape(find_model("dculab-tiny"));
  const std::string own_heads = std::to_string(loaded.heads().num_key_value_heads);
  loaded.dtype = Dtype::bf16;
  const std::vector<engine::BenchPoint> points = grid_points(small_grid(), loaded);
  REQUIRE(points.size() == 2);
  CHECK(points[0].id == "decode kv_heads=" + own_heads + " block=16 kv=f16 context=64 batch=2");
  CHECK(points[1].id == "prefill kv_heads=2 block=8 kv=f16 retention=sinks 4 + 28 context=16 batch=1");
  CHECK(points[1].model.heads().num_key_value_heads == 2);
  CHECK(points[0].batch.num_tokens() == 2);
  CHECK(points[1].batch.num_tokens() == 16);
  for (const engine::BenchPoint& point : points) {
    CHECK(point.model.dtype == Dtype::bf16);
    CHECK(point.options.weights == loaded.layer_format());
  }
}

TEST_CASE("activations that do not go with the weights are refused before a step is run") {
  StepGrid grid = small_grid();
  grid.activations = ActivationMode::int8;
  const ModelShape loaded = engine::read_model_shape(find_model("dculab-tiny"));
  CHECK_THROWS_WITH(grid_points(grid, loaded),
                    ContainsSubstring("--activations int8") && ContainsSubstring("needs quantized weights"));
}

TEST_CASE("a grid is run with the weights that were asked for, a step of the trace each") {
  const StepGrid grid = small_grid();
  double last = 0;
  const Trace trace = measure_grid(grid, [&last](const std::string&, double share) {
    CHECK(share <= 1);
    last = share;
  });
  CHECK(last == 1);
  REQUIRE(trace.steps.size() == grid.steps.size());
  for (const TraceStep& step : trace.steps) {
    CHECK(step.model.dtype == Dtype::bf16);
    CHECK(step.duration > Seconds{});
  }
  CHECK(trace.steps.front().id.starts_with("decode "));
  CHECK_FALSE(trace.header.device.empty());
}

}  // namespace
}  // namespace dculab::study

#include "engine/measure/alone_latency.hpp"

#include "tests/engine/support/golden_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {

TEST_CASE("a request's latency alone is interpolated between prompts that were run", "[alone_latency]") {
  const auto seconds = [](std::vector<double> values) { return std::vector<Seconds>(values.begin(), values.end()); };
  const MeasuredAloneLatency alone(
      std::vector<MeasuredAloneLatency::Run>{{.prompt_tokens = 10, .until_token = seconds({1, 2, 3})},
                                             {.prompt_tokens = 30, .until_token = seconds({3, 5, 7})}});
  CHECK(alone.latency(10, 1) == Seconds(1));
  CHECK(alone.latency(30, 3) == Seconds(7));
  CHECK(alone.latency(20, 2) == Seconds(3.5));
  CHECK(alone.latency(5, 2) == Seconds(2));
  CHECK(alone.latency(99, 2) == Seconds(5));
  CHECK(alone.latency(30, 5) == Seconds(11));  // beyond the context: as its last tokens
}

TEST_CASE("latencies of requests alone grow with prompt and answer", "[alone_latency]") {
  GeneratorOptions asked;
  asked.num_threads = 2;
  ModelWeights weights = load_weights(kGoldenFolder / "text");
  const EngineOptions options = served_options(asked, weights.shape);
  OpenModel model = open_model(std::move(weights), options, asked);
  RequestWorkload workload{.requests = 20};
  workload.prompt = {LengthKind::uniform, 1, 0, 4, 60};
  workload.output = {LengthKind::uniform, 1, 0, 2, 30};
  workload.vocab_size = model.executor->shape().vocab_size;
  const MeasuredAloneLatency alone(model, options, workload);
  CHECK(alone.latency(8, 1) > Seconds());
  CHECK(alone.latency(8, 30) > alone.latency(8, 2));
}

}  // namespace dculab::engine

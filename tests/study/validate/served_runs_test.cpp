#include "study/validate/served_runs.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "study/validate/served_fit.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

using config::ServedFigure;
using config::ServedMetric;

ServedFigure served_figure(ServedMetric metric, double seconds) {
  ServedFigure figure;
  figure.line = 2;
  figure.experiment = "1";
  figure.stage = "all";
  figure.metric = metric;
  figure.measured = Seconds(seconds);
  figure.load = {.machine = "h100-sxm",
                 .devices = 1,
                 .model = "meta-llama/Llama-3.1-8B-Instruct",
                 .weights = "fp16",
                 .prompt_tokens = 200,
                 .output_tokens = 20,
                 .requests_per_second = {5, 10},
                 .stage = Seconds(10),
                 .max_num_seqs = 128,
                 .max_num_batched_tokens = 2048,
                 .gpu_memory_utilization = 0.9,
                 .enable_prefix_caching = true};
  return figure;
}

TEST_CASE("a load's stages have as many requests as rate and time say, in their time") {
  const RequestWorkload workload = requests_of(served_figure(ServedMetric::e2e_mean, 1).load, {});
  CHECK(problems(workload).empty());
  REQUIRE(workload.recorded.size() == 150);
  CHECK(workload.recorded[49].arrival == Seconds(10));
  CHECK(workload.recorded[50].arrival > Seconds(10));
  CHECK(workload.recorded.back().arrival == Seconds(20));
  CHECK(std::ranges::is_sorted(workload.recorded, {}, &RecordedRequest::arrival));
  CHECK(workload.prefix_tokens == 199);
  CHECK(requests_of(served_figure(ServedMetric::e2e_mean, 1).load, {.prefix_tokens = 100}).prefix_tokens == 100);
}

TEST_CASE("a model of the Hub is the shipped one that begins its name") {
  CHECK(shipped_model("meta-llama/Llama-2-70b-hf") == "llama-2-70b");
  CHECK(shipped_model("mistralai/Mistral-Nemo-Instruct-2407") == "mistral-nemo");
  CHECK(shipped_model("codellama/CodeLlama-34b-Instruct-hf") == "codellama-34b");
  CHECK(shipped_model("mistralai/Mixtral-8x7B-v0.1") == "mixtral-8x7b");
  CHECK_THROWS_AS(shipped_model(""), InputError);
}

TEST_CASE("requests that name no sampling ask for what the model's authors recommend") {
  CHECK(default_sampling("meta-llama/Llama-3.1-8B-Instruct").top_p == 0.9);
  CHECK(default_sampling("Qwen/Qwen3-14B").filters());
  CHECK_FALSE(default_sampling("mistralai/Mistral-Nemo-Instruct-2407").filters());
}

TEST_CASE("served runs are simulated, the same ones each time, and what cannot be is listed") {
  std::vector<ServedFigure> figures{served_figure(ServedMetric::e2e_mean, 0.2),
                                    served_figure(ServedMetric::ttft_p99, 0.1)};
  figures.push_back(figures[0]);
  figures[2].load.model = "mistralai/Mixtral-8x7B-v0.1";
  const ServedRuns served = validate_served(figures, {});
  REQUIRE(served.rows.size() == 2);
  REQUIRE(served.unpriced.size() == 1);
  CHECK_THAT(served.unpriced.front().reason, ContainsSubstring("mixtral-8x7b leaves no room"));
  CHECK(served.rows[0].predicted > served.rows[1].predicted);
  CHECK(validate_served(figures, {.threads = 1}).rows[0].predicted == served.rows[0].predicted);
  CHECK(validate_served(figures, {.seed = 2}).rows[0].predicted != served.rows[0].predicted);
  // Prompts that are computed anew take longer than those that repeat.
  CHECK(validate_served(figures, {.prefix_tokens = 0}).rows[0].predicted > served.rows[0].predicted);
}

TEST_CASE("each predictor is scored on the rows it has, ours first") {
  ServedFigure figure = served_figure(ServedMetric::itl_mean, 1);
  figure.predicted_by = {{"a", Seconds(0.5)}};
  const std::vector<ServedRow> rows{{figure, Seconds(1.25)}};
  const std::vector<ServedScore> scores = score_served(rows, std::vector{figure, figure});
  REQUIRE(scores.size() == 2);
  CHECK(scores[0].who == "dculab");
  CHECK(scores[0].error.median_abs_error == 0.25);
  CHECK(scores[1].who == "a");
  CHECK(scores[1].error.count == 2);
  CHECK(scores[1].error.bias == -0.5);
}

TEST_CASE("a rival is compared where both predict, and a run's stages are not counted beside it") {
  ServedFigure figure = served_figure(ServedMetric::itl_mean, 1), alone = figure, stage = figure;
  figure.predicted_by = {{"a", Seconds(0.5)}};
  stage.predicted_by = {{"a", Seconds(9)}};
  stage.stage = "0";
  const std::vector<ServedRow> rows{{figure, Seconds(1.25)}, {alone, Seconds(3)}, {stage, Seconds(5)}};
  const std::vector<CommonScore> common = score_common(rows);
  REQUIRE(common.size() == 1);
  CHECK(common[0].rival == "a");
  CHECK(common[0].ours.count == 1);
  CHECK(common[0].ours.median_abs_error == 0.25);
  CHECK(common[0].theirs.median_abs_error == 0.5);
  CHECK(score_served(rows, std::vector{figure, alone, stage}).front().error.count == 2);
}

// Three loads, measured as a server takes them whose requests are 9 ms on their way.
TEST_CASE("what experiments have in common is learned from the others of each") {
  std::vector<ServedFigure> figures;
  for (const char* rates : {"2", "5", "8"})
    for (const ServedMetric metric : {ServedMetric::e2e_mean, ServedMetric::itl_mean, ServedMetric::ttft_mean}) {
      figures.push_back(served_figure(metric, 1));
      figures.back().experiment = rates;
      figures.back().load.requests_per_second = {std::stod(rates)};
    }
  const ServerFigures truth{.per_request = Seconds(9e-3), .sampler_step = 1, .sampler_logit = 1};
  ServedChoices choices;
  choices.change = [truth](sim::Stack& stack) { truth.apply_to(stack); };
  const std::vector<ServedRow> true_rows = validate_served(figures, choices).rows;
  REQUIRE(true_rows.size() == figures.size());
  for (std::size_t row = 0; row < figures.size(); ++row) figures[row].measured = true_rows[row].predicted;

  const ServedLeftOut found = leave_experiments_out(figures, {});
  REQUIRE(found.fits.size() == 3);
  CHECK(found.runs.rows.size() == figures.size());
  for (const FittedWithout& each : found.fits) {
    CAPTURE(each.experiment);
    CHECK(each.figures.per_request.value() == Approx(9e-3).epsilon(0.15));
    CHECK(each.figures.sampler_step == Approx(1).epsilon(0.1));
    CHECK(each.figures.sampler_logit == Approx(1).epsilon(0.1));
  }
  const std::vector<ServedRow> as_files = validate_served(figures, {}).rows;
  for (std::size_t row = 0; row < figures.size(); ++row) {
    const double error = std::abs(found.runs.rows[row].error());
    if (figures[row].metric == ServedMetric::ttft_mean)
      CHECK(error < 0.25 * std::abs(as_files[row].error()));
    else
      CHECK(error < 0.01);
  }
  figures.push_back(served_figure(ServedMetric::e2e_mean, 1));
  figures.back().load.model = "mistralai/Mixtral-8x7B-v0.1";
  CHECK(leave_experiments_out(figures, {}).runs.unpriced.size() == 1);
  figures.resize(6);
  CHECK_THROWS_WITH(leave_experiments_out(figures, {}), ContainsSubstring("at least 3 experiments"));
}

}  // namespace
}  // namespace dculab::study

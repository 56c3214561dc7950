#include "study/benchmarks/benchmark_scores.hpp"

#include <algorithm>
#include <functional>

#include "sim/serving/step_confidence.hpp"
#include "sim/serving/step_sample.hpp"

namespace dculab::study {
namespace {

using config::BenchmarkFigure;
using config::BenchmarkMetric;
using config::BenchmarkResult;
using config::BenchmarkTool;

// What was done, and how long that took.
struct Done {
  double requests = 0, prompt_tokens = 0, output_tokens = 0;
  Seconds time;
};

[[nodiscard]] double rate_of(BenchmarkMetric metric, const Done& done) {
  switch (metric) {
    case BenchmarkMetric::request_rate:
      return done.requests / done.time.value();
    case BenchmarkMetric::output_rate:
    case BenchmarkMetric::decode_rate:
      return done.output_tokens / done.time.value();
    case BenchmarkMetric::prefill_rate:
      return done.prompt_tokens / done.time.value();
    case BenchmarkMetric::total_rate:
      return (done.prompt_tokens + done.output_tokens) / done.time.value();
    default:
      return done.time.value();
  }
}

[[nodiscard]] Done done_by(const BenchmarkCase& each, Seconds time) {
  const double requests = each.result.tool == BenchmarkTool::llama_bench ? 1 : each.workload.requests;
  const auto tokens = [&](const std::optional<double>& stated, const LengthDistribution& lengths) {
    if (each.result.tool == BenchmarkTool::llama_bench) return stated.value_or(0);
    return requests * lengths.center;
  };
  return {requests, tokens(each.result.prompt_tokens, each.workload.prompt),
          tokens(each.result.output_tokens, each.workload.output), time};
}

[[nodiscard]] const QuantileSketch& sketch_of(const ServingMetrics& metrics, BenchmarkMetric metric) {
  switch (metric) {
    case BenchmarkMetric::tpot:
      return metrics.tpot();
    case BenchmarkMetric::itl:
      return metrics.itl();
    case BenchmarkMetric::latency:
      return metrics.latency();
    default:
      return metrics.ttft();
  }
}

[[nodiscard]] double figure_of(const ServingMetrics& metrics, const BenchmarkFigure& figure) {
  if (figure.metric >= BenchmarkMetric::duration)
    return rate_of(figure.metric,
                   {static_cast<double>(metrics.requests()), static_cast<double>(metrics.prompt_tokens()),
                    static_cast<double>(metrics.output_tokens()), metrics.duration()});
  const QuantileSketch& times = sketch_of(metrics, figure.metric);
  if (times.count() == 0) return 0;
  return (figure.quantile ? times.quantile(*figure.quantile) : times.mean()).value();
}

using OnStep = std::function<void(const ServedStep&, int engine)>;

[[nodiscard]] std::vector<double> served_figures(const BenchmarkCase& each, const sim::Machine& machine, double scale,
                                                 const OnStep& on_step = {}) {
  sim::SimulatedServer server = each.server;
  server.machine = machine;
  server.step_scale = scale;
  const sim::ServingRun run = sim::simulate(server, each.workload, {}, {.on_step = on_step});
  std::vector<double> figures;
  for (const BenchmarkFigure& figure : each.result.figures) figures.push_back(figure_of(run.metrics, figure));
  return figures;
}

[[nodiscard]] std::vector<double> offline_figures(const BenchmarkCase& each, Seconds time) {
  std::vector<double> figures;
  for (const BenchmarkFigure& figure : each.result.figures)
    figures.push_back(rate_of(figure.metric, done_by(each, time)));
  return figures;
}

// `predicted` with the lowest and the highest of some predictions.
[[nodiscard]] std::vector<BenchmarkScore> scores_of(const BenchmarkResult& result, const std::vector<double>& predicted,
                                                    const std::vector<std::vector<double>>& others) {
  std::vector<BenchmarkScore> scores;
  for (std::size_t index = 0; index < predicted.size(); ++index) {
    BenchmarkScore& score = scores.emplace_back(
        BenchmarkScore{result.figures[index], predicted[index], predicted[index], predicted[index]});
    for (const std::vector<double>& other : others) {
      score.low = std::min(score.low, other[index]);
      score.high = std::max(score.high, other[index]);
    }
  }
  return scores;
}

}  // namespace

std::vector<double> predicted_figures(const BenchmarkCase& each, const sim::Machine& machine, double scale) {
  if (each.measured_run) return offline_figures(each, scale * sim::price_run(machine, *each.measured_run));
  return served_figures(each, machine, scale);
}

std::vector<sim::StepFeatures> predicted_steps(const BenchmarkCase& each, const sim::Machine& machine) {
  std::vector<Batch> batches;
  if (each.measured_run) {
    for (const sim::RunStep& step : each.measured_run->steps) batches.push_back(step.plan.batch);
    return sim::served_features(each.server, batches);
  }
  sim::StepSample sample(sim::kSampledSteps);
  static_cast<void>(served_figures(each, machine, 1, [&](const ServedStep& step, int) { sample.add(step); }));
  return sim::served_features(each.server, sample.batches());
}

double BenchmarkScore::error() const {
  return (config::is_rate(figure.metric) ? figure.value / predicted : predicted / figure.value) - 1;
}

std::vector<BenchmarkScore> score_benchmark(const BenchmarkCase& each) {
  const sim::Machine& machine = each.server.machine;
  if (each.measured_run) {
    const Seconds time = sim::price_run(machine, *each.measured_run);
    const sim::Confidence trust = sim::run_confidence(machine, *each.measured_run, time);
    return scores_of(each.result, offline_figures(each, time),
                     {offline_figures(each, trust.low), offline_figures(each, trust.high)});
  }
  sim::StepSample sample(sim::kSampledSteps);
  const auto predicted = served_figures(each, machine, 1, [&](const ServedStep& step, int) { sample.add(step); });
  const sim::StepConfidence trust = sim::step_confidence(each.server, sample.batches());
  return scores_of(each.result, predicted,
                   {served_figures(each, machine, trust.low), served_figures(each, machine, trust.high)});
}

std::vector<BenchmarkScore> score_benchmark(const BenchmarkCase& each, const sim::Machine& machine, double factor) {
  return scores_of(each.result, predicted_figures(each, machine),
                   {predicted_figures(each, machine, 1 / factor), predicted_figures(each, machine, factor)});
}

}  // namespace dculab::study

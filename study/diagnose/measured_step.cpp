#include "study/diagnose/measured_step.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "config/benchmarks/benchmark_file.hpp"
#include "config/unit_text.hpp"
#include "config/weight_format_text.hpp"
#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "study/benchmarks/benchmark_files.hpp"
#include "study/scenario/locate.hpp"
#include "study/validate/published_weights.hpp"

namespace dculab::study {
namespace {

using config::BenchmarkMetric;
using config::BenchmarkResult;
using config::BenchmarkTool;

[[nodiscard]] Seconds parse_time(const std::string& option, const std::string& text) {
  Seconds time;
  try {
    time = config::parse_quantity<Seconds>(text);
  } catch (const InputError& problem) {
    throw InputError(option, problem.what());
  }
  if (time <= Seconds{}) throw InputError(option, "a time of 0 was not measured");
  return time;
}

// "8x1500=66ms"
[[nodiscard]] MeasuredStep parse_at(const std::string& text, int batch) {
  const std::string option = "--at " + text;
  const std::string advice = "write CONTEXT=TIME or BATCHxCONTEXT=TIME: --at 512=24ms --at 8x1500=66ms";
  const auto equals = text.find('=');
  if (equals == std::string::npos) throw InputError(option, "has no '='; " + advice);
  const std::string_view place = std::string_view(text).substr(0, equals);
  const auto times = place.find('x');
  const auto count = [&](std::string_view number, int largest) {
    int value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size() || value < 1 || value > largest)
      throw InputError(option, in_quotes(std::string(number)) + " is not a whole number from 1 to " +
                                   std::to_string(largest) + "; " + advice);
    return value;
  };
  MeasuredStep step{.batch = batch};
  if (times != std::string_view::npos) step.batch = count(place.substr(0, times), kLargestBatch);
  step.context = count(times == std::string_view::npos ? place : place.substr(times + 1), kLongestContext);
  step.time = parse_time(option, text.substr(equals + 1));
  return step;
}

[[nodiscard]] MeasuredStep of_rate(const StepQuestion& question, const char* option, double rate) {
  if (!std::isfinite(rate) || rate <= 0) throw InputError(option, "must be above 0");
  return {
      .batch = question.batch, .context = question.context, .time = Seconds(question.batch / rate), .is_rate = true};
}

[[nodiscard]] std::optional<double> measured_figure(const BenchmarkResult& result, BenchmarkMetric metric) {
  std::optional<double> median;
  for (const config::BenchmarkFigure& figure : result.figures) {
    if (figure.metric != metric) continue;
    if (!figure.quantile) return figure.value;
    if (*figure.quantile == 0.5) median = figure.value;
  }
  return median;
}

// llama-bench times one prompt, or the steps of one sequence.
[[nodiscard]] std::optional<MeasuredStep> of_llama_bench(const BenchmarkResult& result, Phase phase) {
  const double depth = result.prefix_tokens.value_or(0);
  if (phase == Phase::prefill) {
    const auto rate = measured_figure(result, BenchmarkMetric::prefill_rate);
    if (!rate || !result.prompt_tokens || depth > 0) return std::nullopt;
    const int prompt = static_cast<int>(std::lround(*result.prompt_tokens));
    return MeasuredStep{.phase = phase, .context = prompt, .time = Seconds(prompt / *rate)};
  }
  const auto rate = measured_figure(result, BenchmarkMetric::decode_rate);
  if (!rate || !result.output_tokens) return std::nullopt;
  const double context = depth + *result.output_tokens / 2;
  return MeasuredStep{.context = std::max(1, static_cast<int>(std::lround(context))), .time = Seconds(1 / *rate)};
}

// Of a server: TPOT, or the time between tokens where a file has only that, of as many sequences as run at a time on
// average, by Little's law, in the middle of their answers.
[[nodiscard]] std::optional<MeasuredStep> of_served(const BenchmarkResult& result) {
  auto tpot = measured_figure(result, BenchmarkMetric::tpot);
  if (!tpot) tpot = measured_figure(result, BenchmarkMetric::itl);
  if (!tpot || *tpot <= 0 || !result.prompt_tokens || !result.output_tokens) return std::nullopt;
  const double running = measured_figure(result, BenchmarkMetric::output_rate).value_or(1 / *tpot) * *tpot;
  const int most = result.max_concurrency.value_or(kLargestBatch);
  return MeasuredStep{
      .batch = std::clamp(static_cast<int>(std::lround(running)), 1, most),
      .context = std::max(1, static_cast<int>(std::lround(*result.prompt_tokens + *result.output_tokens / 2))),
      .time = Seconds(*tpot)};
}

// What the file says of model, stack and formats stands for what the question leaves out.
void complete(StepQuestion& step, const BenchmarkResult& result, const std::string& file) {
  if (step.model.empty()) {
    if (result.model.empty() || !try_find_model(result.model))
      throw InputError(file, "names no model that is shipped here; give --model, a folder with its config.json");
    step.model = result.model;
  }
  if (step.stack.empty())
    for (const char* known : {"sglang", "llama.cpp", "vllm"})
      if (result.program.find(known) != std::string::npos) step.stack = known;
  if (step.stack.empty() && result.tool == BenchmarkTool::vllm_serve) step.stack = "vllm";
  if (step.stack.empty()) throw InputError(file, "does not say which program served; give --stack");
  if (step.weights.empty() && !result.weights.empty())
    step.weights = config::weight_format_text(published_weights(result.weights).format);
  if (step.kv_cache_dtype.empty()) step.kv_cache_dtype = result.kv_cache_dtype;
  for (const auto& [key, value] : result.server) {  // what was given stands behind, and wins
    const std::string change = key + "=" + value;
    const bool is_of_steps = key.starts_with("deployment.") || key.starts_with("kv_cache.");
    if (is_of_steps && std::ranges::find(step.set, change) == step.set.end()) step.set.insert(step.set.begin(), change);
  }
}

void add_files(DiagnosisQuestion& question, Phase phase, std::vector<MeasuredStep>& steps) {
  for (const std::string& file : files_below(question.files))
    for (const BenchmarkResult& result : config::read_benchmark_file(file)) {
      const bool is_llama_bench = result.tool == BenchmarkTool::llama_bench;
      const auto step = is_llama_bench            ? of_llama_bench(result, phase)
                        : phase == Phase::prefill ? std::nullopt
                                                  : of_served(result);
      if (!step) continue;
      steps.push_back(*step);
      complete(question.step, result, file);
    }
  if (!question.files.empty() && steps.empty())
    throw InputError(question.files.front(),
                     phase == Phase::decode
                         ? "has no TPOT with the lengths of prompts and answers, and no decode rate; give --tpot"
                         : "has no rate of prompts alone; give --prefill-tokens-per-second");
}

}  // namespace

std::vector<MeasuredStep> measured_steps(DiagnosisQuestion& question) {
  StepQuestion& step = question.step;
  const bool is_prefill = question.prefill_tokens_per_second != 0 || step.phase == "prefill";
  const bool has_decode = question.tokens_per_second != 0 || !question.tpot.empty() || !question.at.empty();
  if (is_prefill && has_decode)
    throw InputError("--prefill-tokens-per-second",
                     "prefill and decode are diagnosed one at a time; leave out the figures of one");
  if (is_prefill) step.phase = "prefill";
  std::vector<MeasuredStep> steps;
  add_files(question, is_prefill ? Phase::prefill : Phase::decode, steps);
  if (is_prefill && question.prefill_tokens_per_second != 0) {
    MeasuredStep whole = of_rate(step, "--prefill-tokens-per-second", question.prefill_tokens_per_second);
    whole.phase = Phase::prefill;
    whole.time = step.context * whole.time;
    steps.push_back(whole);
  }
  if (question.tokens_per_second != 0)
    steps.push_back(of_rate(step, "--tokens-per-second", question.tokens_per_second));
  if (!question.tpot.empty())
    steps.push_back({.batch = step.batch, .context = step.context, .time = parse_time("--tpot", question.tpot)});
  for (const std::string& text : question.at) steps.push_back(parse_at(text, step.batch));
  if (steps.empty())
    throw InputError("diagnose",
                     "nothing was measured; give --tokens-per-second, --tpot, --at CONTEXT=TIME, "
                     "--prefill-tokens-per-second or a benchmark's result");
  if (steps.size() > kMostMeasurements)
    throw InputError("diagnose", "takes at most " + std::to_string(kMostMeasurements) + " measurements, not " +
                                     std::to_string(steps.size()));
  return steps;
}

}  // namespace dculab::study

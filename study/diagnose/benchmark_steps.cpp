#include "study/diagnose/benchmark_steps.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <variant>

#include "config/benchmarks/benchmark_file.hpp"
#include "config/weight_format_text.hpp"
#include "core/error.hpp"
#include "core/letter_case.hpp"
#include "study/benchmarks/benchmark_files.hpp"
#include "study/scenario/locate.hpp"
#include "study/validate/published_weights.hpp"

namespace dculab::study {
namespace {

using config::BenchmarkMetric;
using config::BenchmarkResult;
using config::BenchmarkTool;

// A step, or why the result has none.
using StepOrReason = std::variant<MeasuredStep, std::string>;

constexpr const char* kGiveTpot = "; leave it out and give --tpot TIME --batch N --context N";

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
[[nodiscard]] StepOrReason of_llama_bench(const BenchmarkResult& result, Phase phase) {
  const double depth = result.prefix_tokens.value_or(0);
  if (phase == Phase::prefill) {
    const auto rate = measured_figure(result, BenchmarkMetric::prefill_rate);
    if (!rate || !result.prompt_tokens || depth > 0)
      return "has no rate of prompts alone; leave it out and give --prefill-tokens-per-second";
    const int prompt = static_cast<int>(std::lround(*result.prompt_tokens));
    return MeasuredStep{.phase = phase, .context = prompt, .time = Seconds(prompt / *rate)};
  }
  const auto rate = measured_figure(result, BenchmarkMetric::decode_rate);
  if (!rate || !result.output_tokens) return std::string("has no decode rate") + kGiveTpot;
  const double context = depth + *result.output_tokens / 2;
  return MeasuredStep{.context = std::max(1, static_cast<int>(std::lround(context))), .time = Seconds(1 / *rate)};
}

// What the question says of lengths, for results that lack them.
struct GivenLength {
  const char* option;
  int tokens = 0;
  bool is_used = false;

  [[nodiscard]] std::optional<double> of(const std::optional<double>& stated) {
    if (stated || tokens == 0) return stated;
    is_used = true;
    return tokens;
  }
};
struct GivenLengths {
  GivenLength prompt{.option = "--prompt-tokens"}, output{.option = "--output-tokens"};
};

// The median time between two tokens: that of a decode step, since the mean and TPOT have steps with other requests'
// prompts in them. Nothing where tokens come in bunches: then most of these times are next to nothing.
[[nodiscard]] std::optional<double> median_itl(const BenchmarkResult& result, double tpot) {
  constexpr double kBunched = 0.05;
  for (const config::BenchmarkFigure& figure : result.figures)
    if (figure.metric == BenchmarkMetric::itl && figure.quantile == 0.5 && figure.value > kBunched * tpot)
      return std::min(figure.value, tpot);
  return std::nullopt;
}

// A step of decode was not timed apart from those with other requests' prompts.
[[nodiscard]] bool has_prefills(const MeasuredStep& step) {
  return step.batch > 1 && step.served && !step.served->times_steps;
}

[[nodiscard]] std::optional<ServedLoad> load_of(const BenchmarkResult& result, double prompt, double output,
                                                double tpot) {
  const auto tokens_per_second = measured_figure(result, BenchmarkMetric::output_rate);
  auto requests = measured_figure(result, BenchmarkMetric::request_rate);
  if (!requests && tokens_per_second) requests = *tokens_per_second / output;
  if (!requests) return std::nullopt;
  const auto ttft = measured_figure(result, BenchmarkMetric::ttft);
  return ServedLoad{.requests_per_second = *requests,
                    .prompt_tokens = std::max(1, static_cast<int>(std::lround(prompt))),
                    .tpot = Seconds(tpot),
                    .ttft = ttft ? std::optional<Seconds>(*ttft) : std::nullopt,
                    .times_steps = median_itl(result, tpot).has_value()};
}

// Of a server: a decode step of as many sequences as run at a time on average, by Little's law, in the middle of their
// answers.
[[nodiscard]] StepOrReason of_served(const BenchmarkResult& result, GivenLengths& given) {
  auto tpot = measured_figure(result, BenchmarkMetric::tpot);
  if (!tpot) tpot = measured_figure(result, BenchmarkMetric::itl);
  if (!tpot || *tpot <= 0)
    return "has neither TPOT nor ITL: " + std::string(name(result.tool)) + " timed no steps of decode alone" +
           kGiveTpot;
  const auto prompt = given.prompt.of(result.prompt_tokens), output = given.output.of(result.output_tokens);
  if (!prompt || !output)
    return "does not say how long prompts and answers were; give --prompt-tokens and --output-tokens as in its command";
  const double running = measured_figure(result, BenchmarkMetric::output_rate).value_or(1 / *tpot) * *tpot;
  const int most = result.max_concurrency.value_or(kLargestBatch);
  return MeasuredStep{.batch = std::clamp(static_cast<int>(std::lround(running)), 1, most),
                      .context = std::max(1, static_cast<int>(std::lround(*prompt + *output / 2))),
                      .time = Seconds(median_itl(result, *tpot).value_or(*tpot)),
                      .served = load_of(result, *prompt, *output, *tpot)};
}

[[nodiscard]] StepOrReason step_of_result(const BenchmarkResult& result, Phase phase, GivenLengths& given) {
  if (result.tool == BenchmarkTool::llama_bench) return of_llama_bench(result, phase);
  if (phase == Phase::prefill) return "has no rate of prompts alone; leave it out and give --prefill-tokens-per-second";
  return of_served(result, given);
}

[[nodiscard]] std::string program_of(const BenchmarkResult& result) {
  const std::string program = lower_case(result.program);
  for (const char* known : {"sglang", "llama.cpp", "vllm"})
    if (program.find(known) != std::string::npos) return known;
  return result.tool == BenchmarkTool::vllm_serve ? "vllm" : "";
}

[[nodiscard]] bool is_of_steps(const std::string& key) {
  return key.starts_with("deployment.") || key.starts_with("kv_cache.");
}

// What the file says of model, stack and formats stands for what the question leaves out.
void complete(StepQuestion& step, const BenchmarkResult& result, const std::string& file) {
  if (step.model.empty()) {
    if (result.model.empty() || !try_find_model(result.model))
      throw InputError(file, "names no model that is shipped here; give --model, a folder with its config.json");
    step.model = result.model;
  }
  if (step.stack.empty()) step.stack = program_of(result);
  if (step.stack.empty()) throw InputError(file, "does not say which program served; give --stack");
  if (step.weights.empty() && !result.weights.empty())
    step.weights = config::weight_format_text(published_weights(result.weights).format);
  if (step.kv_cache_dtype.empty()) step.kv_cache_dtype = result.kv_cache_dtype;
  for (const auto& [key, value] : result.server) {  // what was given stands behind, and wins
    const std::string change = key + "=" + value;
    if (is_of_steps(key) && std::ranges::find(step.set, change) == step.set.end())
      step.set.insert(step.set.begin(), change);
  }
}

// A model's name without its owner or folder, in small letters.
[[nodiscard]] std::string short_name(std::string model) {
  while (model.ends_with('/')) model.pop_back();
  model = lower_case(model.substr(model.find_last_of('/') + 1));
  return model.ends_with(".gguf") ? model.substr(0, model.size() - 5) : model;
}

[[nodiscard]] std::optional<std::filesystem::path> folder_of(const std::string& model) {
  try {
    return try_find_model(model);
  } catch (const std::filesystem::filesystem_error&) {  // a path of the machine that was measured
    return std::nullopt;
  }
}

// Also by what the file's name begins with: "Qwen3-8B-AWQ" may be a qwen3-8b.
[[nodiscard]] bool may_be_of(const std::string& in_file, const std::string& model) {
  const auto folder = folder_of(model);
  for (std::string each = short_name(in_file); !each.empty();) {
    if (each == short_name(model) || (folder && folder_of(each) == folder)) return true;
    const auto cut = each.find_last_of("-_.");
    each.resize(cut == std::string::npos ? 0 : cut);
  }
  return false;
}

// What files say of model and server: of each property the first that says it.
class OneServer {
 public:
  // Throws InputError where another file says something else.
  void require(const BenchmarkResult& result, const std::string& file) {
    require("the model", short_name(result.model), file);
    require("weights", lower_case(result.weights), file);
    require("KV cache dtype", lower_case(result.kv_cache_dtype), file);
    require("the program", program_of(result), file);
    for (const auto& [key, value] : result.server)
      if (is_of_steps(key)) require(key, value, file);
  }

 private:
  void require(const std::string& property, const std::string& value, const std::string& file) {
    if (value.empty()) return;
    const auto [said, is_first] = said_.try_emplace(property, value, file);
    const auto& [other, other_file] = said->second;
    if (!is_first && other != value)
      throw InputError(file, property + " is " + value + ", but " + other + " in " + other_file +
                                 "; give the results of one model and one server at a time");
  }

  std::map<std::string, std::pair<std::string, std::string>> said_;  // value and file
};

void refuse_idle_length(const GivenLength& length, const std::vector<std::string>& files) {
  if (length.tokens == 0 || length.is_used) return;
  throw InputError(length.option, files.empty() ? "is of a benchmark's result; give --context"
                                                : "no file needs it, " + files.front() +
                                                      " says how long requests were or times none; leave it out");
}

void warn(std::vector<std::string>& warnings, const std::string& text) {
  if (std::ranges::find(warnings, text) == warnings.end()) warnings.push_back(text);
}

// Where the question says something else than the file, the question holds.
void warn_of_other_settings(const DiagnosisQuestion& stated, const BenchmarkResult& result, const std::string& file,
                            std::vector<std::string>& warnings) {
  const StepQuestion& step = stated.step;
  const auto compare = [&](const char* what, const std::string& in_file, const std::string& asked, bool is_same) {
    if (in_file.empty() || asked.empty() || is_same) return;
    warn(warnings, file + " is of " + what + " " + in_file + ", but is priced as " + asked);
  };
  compare("the model", result.model, step.model, may_be_of(result.model, step.model));
  const std::string program = program_of(result);
  compare("the program", program, step.stack, lower_case(step.stack).find(program) != std::string::npos);
  const std::string weights =
      result.weights.empty() ? "" : config::weight_format_text(published_weights(result.weights).format);
  compare("weights", weights, step.weights, weights == lower_case(step.weights));
  compare("KV cache dtype", result.kv_cache_dtype, step.kv_cache_dtype,
          lower_case(result.kv_cache_dtype) == lower_case(step.kv_cache_dtype));
  const std::string asked = stated.tensor_parallel_size == 0 ? "" : std::to_string(stated.tensor_parallel_size);
  for (const auto& [key, value] : result.server)
    if (key == "deployment.tensor_parallel_size") compare("tensor parallel size", value, asked, value == asked);
}

}  // namespace

void add_benchmark_steps(DiagnosisQuestion& question, Phase phase, Measurements& found) {
  const DiagnosisQuestion stated = question;
  GivenLengths given;
  given.prompt.tokens = question.prompt_tokens;
  given.output.tokens = question.output_tokens;
  OneServer server;
  std::string file_without, reason;
  for (const std::string& file : files_below(question.files)) {
    const std::size_t before = found.steps.size();
    std::string why;
    for (const BenchmarkResult& result : config::read_benchmark_file(file)) {
      StepOrReason step = step_of_result(result, phase, given);
      if (const auto* none = std::get_if<std::string>(&step)) {
        why = *none;
        continue;
      }
      server.require(result, file);
      complete(question.step, result, file);
      warn_of_other_settings(stated, result, file, found.warnings);
      found.steps.push_back(std::get<MeasuredStep>(std::move(step)));
      found.steps.back().source = file;
      if (phase == Phase::decode && has_prefills(found.steps.back()))
        warn(found.warnings, file +
                                 " has no median ITL: its TPOT has the prefills of other requests in it, so a step of "
                                 "decode is shorter than it says");
    }
    if (found.steps.size() > before) continue;
    if (reason.empty()) reason = why, file_without = file;
    warn(found.warnings, file + " is left out: it " + why.substr(0, why.find("; ")));
  }
  if (found.steps.empty() && !reason.empty()) throw InputError(file_without, reason);
  refuse_idle_length(given.prompt, question.files);
  refuse_idle_length(given.output, question.files);
}

}  // namespace dculab::study

#include "study/benchmarks/benchmark_cases.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "config/benchmarks/benchmark_file.hpp"
#include "config/number_text.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "core/letter_case.hpp"
#include "sim/study/serving_run.hpp"
#include "study/benchmarks/benchmark_files.hpp"
#include "study/calibrate/recorded_device.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/server.hpp"
#include "study/scenario/stacks.hpp"
#include "study/validate/published_points.hpp"
#include "study/validate/published_software.hpp"

namespace dculab::study {
namespace {

using config::BenchmarkResult;
using config::BenchmarkTool;

constexpr const char* kQuestion = R"(schema: dculab/scenario/1
question: How long should what a benchmark measured take?
workload: {requests: 1, prompt_tokens: 1, output_tokens: 1}
)";

// What the file says, or else the options.
struct KnownSizes {
  int requests = 1;
  int prompt_tokens = 1, output_tokens = 1;
};

[[nodiscard]] bool is_offline(BenchmarkTool tool) {
  return tool == BenchmarkTool::vllm_latency || tool == BenchmarkTool::vllm_throughput;
}

[[nodiscard]] int rounded(double tokens) { return std::max(1, static_cast<int>(std::lround(tokens))); }

[[nodiscard]] KnownSizes sizes_of(const BenchmarkCase& each, const BenchmarkQuestion& question) {
  const BenchmarkResult& result = each.result;
  std::string missing;
  const auto need = [&missing](const char* option) { missing += std::string(missing.empty() ? "" : ", ") + option; };
  KnownSizes sizes{.requests = result.requests};
  if (result.tool == BenchmarkTool::vllm_latency) {
    if (question.batch == 0) need("--batch");
    sizes.requests = std::max(1, question.batch);
  }
  const auto take = [&](const std::optional<double>& stated, int given, const char* option, int& tokens) {
    if (given == 0 && !stated) need(option);
    tokens = given > 0 ? given : rounded(stated.value_or(1));
  };
  take(result.prompt_tokens, question.prompt_tokens, "--prompt-tokens", sizes.prompt_tokens);
  take(result.output_tokens, question.output_tokens, "--output-tokens", sizes.output_tokens);
  if (!missing.empty())
    throw InputError(each.file, "a result of " + std::string(name(result.tool)) + " does not say what was sent; give " +
                                    missing + " as in its command");
  return sizes;
}

// The stack that a file names, or the tool's own.
[[nodiscard]] std::string stack_of(const BenchmarkQuestion& question, BenchmarkCase& each) {
  if (!question.stack.empty()) return question.stack;
  const std::string program = lower_case(each.result.program);
  for (const char* known : {"sglang", "llama.cpp", "vllm"})
    if (program.find(known) != std::string::npos) return known;
  if (each.result.tool == BenchmarkTool::vllm_serve) {
    each.notes.push_back("taken for vLLM: the file names " +
                         (program.empty() ? "no program" : "the client's backend '" + program + "' only"));
    return "vllm";
  }
  throw InputError(each.file, "does not say which program served; give --stack");
}

[[nodiscard]] std::string model_of(const BenchmarkQuestion& question, const BenchmarkCase& each) {
  if (!question.model.empty()) return question.model;
  if (each.result.model.empty() || each.result.tool == BenchmarkTool::llama_bench)
    throw InputError(each.file, "does not say which shape the model has; give --model");
  if (!try_find_model(each.result.model))
    throw InputError(each.file, "the model '" + each.result.model +
                                    "' is not among the shipped ones; give --model, a folder with its config.json");
  return each.result.model;
}

// Throws InputError for options that would change nothing of this result.
void refuse_idle_options(const BenchmarkQuestion& question, const BenchmarkCase& each) {
  const BenchmarkResult& result = each.result;
  const std::string tool(name(result.tool));
  if (question.batch > 0 && result.tool != BenchmarkTool::vllm_latency)
    throw InputError("--batch", "is of vllm bench latency; " + each.file + " is of " + tool);
  const bool states_lengths = !result.recorded.empty() || result.tool == BenchmarkTool::llama_bench;
  if (states_lengths && (question.prompt_tokens > 0 || question.output_tokens > 0))
    throw InputError("--prompt-tokens, --output-tokens",
                     each.file + " lists how long each request was; leave them out");
  if (result.recorded.empty() && !is_offline(result.tool)) return;
  for (const std::string& change : question.set)
    if (change.starts_with("workload."))
      throw InputError("--set " + change, each.file + " says what was sent; leave it out");
}

[[nodiscard]] bool can_replay(const BenchmarkResult& result) {
  const bool waits = result.max_concurrency && *result.max_concurrency < static_cast<int>(result.recorded.size());
  return result.has_arrivals && !waits;
}

// Throws InputError for requests that were sent in a way that has no prediction, or that nobody states.
void refuse_unknown_load(const BenchmarkQuestion& question, const BenchmarkCase& each) {
  const BenchmarkResult& result = each.result;
  if (!result.unmodelled.empty() && !can_replay(result))
    throw InputError(each.file, result.unmodelled + " is not predicted" +
                                    (result.tool == BenchmarkTool::llama_bench
                                         ? ""
                                         : "; give a result with --save-detailed and its start_times"));
  const bool is_said = std::ranges::any_of(question.set, [](const std::string& change) {
    return change.starts_with("workload.max_concurrency") || change.starts_with("workload.requests_per_second");
  });
  if (!result.is_load_known && !is_said)
    throw InputError(each.file,
                     "does not say how requests were sent; give --set workload.max_concurrency=N, or "
                     "workload.arrival=poisson workload.requests_per_second=R");
}

// The question's options and the result's load as a scenario, which goes through the same checks as a file.
[[nodiscard]] config::Scenario scenario_of(const BenchmarkQuestion& question, BenchmarkCase& each) {
  const BenchmarkResult& result = each.result;
  const KnownSizes sizes = sizes_of(each, question);
  Node document = config::parse_yaml("command line", kQuestion);
  const auto set = [&document](const char* key, const std::string& value) {
    config::set_override(document, {key, value});
  };
  set("model", model_of(question, each));
  set("machine", question.machine);
  set("workload.requests", std::to_string(sizes.requests));
  set("workload.prompt_tokens", std::to_string(sizes.prompt_tokens));
  set("workload.output_tokens", std::to_string(sizes.output_tokens));
  const auto draw = [&set](const char* key, int given, const std::optional<config::LengthRange>& range) {
    if (given == 0 && range)
      set(key, "{distribution: uniform, min: " + std::to_string(range->least) +
                   ", max: " + std::to_string(range->most) + "}");
  };
  draw("workload.prompt_tokens", question.prompt_tokens, result.prompt_range);
  draw("workload.output_tokens", question.output_tokens, result.output_range);
  if (result.requests_per_second) {
    set("workload.arrival", "bursty");
    set("workload.requests_per_second", config::exact_number(*result.requests_per_second));
    set("workload.burstiness", config::exact_number(result.burstiness));
  }
  for (const auto& [key, value] : result.server) set(key.c_str(), value);
  if (result.max_concurrency) set("workload.max_concurrency", std::to_string(*result.max_concurrency));
  for (const std::string& change : question.set) config::set_override(document, config::parse_override(change));
  set("stack", stack_of(question, each));
  return config::read_scenario("command line", document);
}

// Arrivals as recorded say when a place was free on the measured server; another server frees it at another time.
void record_requests(const BenchmarkResult& result, RequestWorkload& workload) {
  if (result.recorded.empty()) return;
  workload.recorded = result.recorded;
  workload.requests = static_cast<int>(result.recorded.size());
  if (can_replay(result)) workload.arrival = ArrivalKind::replay;
}

// Of answers of one token there is no time per token.
void leave_out_idle_figures(BenchmarkCase& each) {
  const RequestWorkload& workload = each.workload;
  const auto has_two = [](const RecordedRequest& request) { return request.output_tokens > 1; };
  const bool of_steps = workload.recorded.empty()
                            ? std::max<double>(workload.output.center,
                                               workload.output.most * (workload.output.kind != LengthKind::fixed)) >= 2
                            : std::ranges::any_of(workload.recorded, has_two);
  if (of_steps) return;
  const auto is_between = [](const config::BenchmarkFigure& figure) {
    return figure.metric == config::BenchmarkMetric::tpot || figure.metric == config::BenchmarkMetric::itl;
  };
  if (std::erase_if(each.result.figures, is_between) > 0)
    each.notes.push_back("TPOT and ITL are left out: answers are taken to have one token");
}

[[nodiscard]] sim::Server offline_server(const sim::SimulatedServer& server, const std::string& file) {
  const sim::Deployment& deployment = server.deployment;
  if (deployment.data_parallel_size > 1 || deployment.pipeline_parallel_size > 1 || deployment.is_disaggregated())
    throw InputError(file, "an offline result is predicted with deployment.tensor_parallel_size only");
  return {server.machine, server.model, server.options, deployment.tensor_parallel_size};
}

void prepare_served(const BenchmarkQuestion& question, BenchmarkCase& each) {
  const config::Scenario scenario = scenario_of(question, each);
  each.server = resolve_server(scenario, resolve_machine(scenario, question.machine));
  each.workload = resolve_requests(scenario, each.server.model);
  record_requests(each.result, each.workload);
  leave_out_idle_figures(each);
  if (each.result.failed > 0)
    each.notes.push_back(std::to_string(each.result.failed) + " requests failed and are no part of the prediction");
  if (const auto found = problems(each.workload); !found.empty()) throw InputError(each.file, found.front());
  if (!is_offline(each.result.tool)) return;
  const KnownSizes sizes = sizes_of(each, question);
  each.measured_run = sim::served_requests(offline_server(each.server, each.file), sizes.requests, sizes.prompt_tokens,
                                           sizes.output_tokens);
}

// One prompt, decode steps of one sequence, or steps behind a prompt, timed together.
[[nodiscard]] sim::MeasuredRun llama_bench_run(const sim::Server& server, const BenchmarkResult& result) {
  int cached = result.prefix_tokens.value_or(0);
  sim::MeasuredRun run;
  if (result.prompt_tokens) run = sim::prefill(server, rounded(*result.prompt_tokens), cached);
  if (!result.output_tokens) return run;
  if (result.prompt_tokens) cached += rounded(*result.prompt_tokens);
  sim::MeasuredRun decode = sim::decode(server, 1, cached + 1, cached + rounded(*result.output_tokens));
  std::ranges::move(decode.steps, std::back_inserter(run.steps));
  run.amount += decode.amount;
  return run;
}

void prepare_llama_bench(const BenchmarkQuestion& question, BenchmarkCase& each) {
  const BenchmarkResult& result = each.result;
  if (!question.set.empty()) throw InputError(each.file, "--set: llama-bench's rows state their options; leave it out");
  config::PublishedPoint point;
  point.software = question.stack.empty() ? "llama.cpp" : question.stack;
  point.model = model_of(question, each);
  point.weights = result.weights;
  point.kv_dtype = result.kv_cache_dtype;
  const bool is_prompt = result.prompt_tokens.has_value();
  point.kind = is_prompt ? config::PointKind::prefill_rate : config::PointKind::decode_rate;
  if (is_prompt) point.context_tokens = result.max_num_batched_tokens;
  sim::Machine machine = resolve_machine(question.machine);
  point.devices = result.devices;
  const std::vector<sim::Stack> stacks = shipped_stacks();
  machine = as_run_by(find_software(point.software, machine, stacks), std::move(machine), stacks);
  const sim::Server server = published_server(point, machine);
  each.measured_run = llama_bench_run(server, result);
  each.server.machine = std::move(machine);
  each.server.model = server.model;
  each.server.options = server.options;
}

// Of the results of one file.
void add_cases(const BenchmarkQuestion& question, const std::string& file, std::vector<BenchmarkResult> results,
               std::vector<BenchmarkCase>& cases) {
  for (BenchmarkResult& result : results) {
    BenchmarkCase& each = cases.emplace_back();
    each.file = file;
    each.result = std::move(result);
    refuse_idle_options(question, each);
    refuse_unknown_load(question, each);
    if (each.result.tool == BenchmarkTool::llama_bench)
      prepare_llama_bench(question, each);
    else
      prepare_served(question, each);
    if (is_unnamed(each.result.hardware, each.server.machine))
      each.notes.push_back("measured on " + each.result.hardware + ", which " + each.server.machine.name +
                           " does not name: is it the same card?");
  }
}

void require_one_server(const std::vector<BenchmarkCase>& cases) {
  for (const BenchmarkCase& each : cases)
    if (each.server.machine.stack.name != cases.front().server.machine.stack.name)
      throw InputError(each.file, "is of " + each.server.machine.stack.name + ", but " + cases.front().file +
                                      " is of " + cases.front().server.machine.stack.name +
                                      "; give one program's results at a time");
}

}  // namespace

std::string BenchmarkCase::title() const { return result.label.empty() ? file : file + ", " + result.label; }

std::vector<BenchmarkCase> benchmark_cases(const BenchmarkQuestion& question) {
  if (question.machine.empty())
    throw InputError("--machine: name the machine that was measured, for example --machine k100-ai");
  std::vector<BenchmarkCase> cases;
  for (const std::string& file : files_below(question.files))
    add_cases(question, file, config::read_benchmark_file(file), cases);
  for (const auto& [name, text] : question.texts) add_cases(question, name, config::read_benchmarks(name, text), cases);
  require_one_server(cases);
  return cases;
}

config::VllmRun vllm_run_of(const config::Scenario& scenario) {
  const RequestWorkload& workload = scenario.workload.served;
  config::VllmRun run{.model = scenario.model.name};
  if (workload.arrival == ArrivalKind::gamma) run.requests_per_second = workload.requests_per_second;
  if (workload.arrival == ArrivalKind::gamma) run.burstiness = workload.burstiness;
  run.max_concurrency = workload.max_concurrency;
  return run;
}

void refuse_benchmark_options(const BenchmarkQuestion& question) {
  const std::pair<const char*, bool> options[] = {{"--model", !question.model.empty()},
                                                  {"--stack", !question.stack.empty()},
                                                  {"--set", !question.set.empty()},
                                                  {"--batch", question.batch > 0},
                                                  {"--prompt-tokens", question.prompt_tokens > 0},
                                                  {"--output-tokens", question.output_tokens > 0}};
  for (const auto& [option, given] : options)
    if (given) throw InputError(option, "is of results of a benchmark tool; traces and points say what they are of");
}

}  // namespace dculab::study

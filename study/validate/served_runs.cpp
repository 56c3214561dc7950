#include "study/validate/served_runs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "config/machine_file.hpp"
#include "core/error.hpp"
#include "core/letter_case.hpp"
#include "files/input.hpp"
#include "model/folder/model_config.hpp"
#include "sim/serving/simulated_server.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/stacks.hpp"
#include "study/validate/published_points.hpp"
#include "study/validate/published_weights.hpp"

namespace dculab::study {
namespace {

using config::ServedFigure;
using config::ServedLoad;
using config::ServedMetric;

// A load that several rows are figures of.
struct LoadRun {
  const ServedLoad* load = nullptr;
  ServingMetrics metrics;
  std::string unpriced;
};

[[nodiscard]] double exponential(std::mt19937_64& random) {
  return -std::log((static_cast<double>(random() >> 11) + 0.5) * 0x1p-53);
}

void add_stage(Seconds begin, const ServedLoad& load, double rate, std::mt19937_64& random, RequestWorkload& workload) {
  std::vector<double> times;
  double time = 0;
  for (int left = static_cast<int>(rate * load.stage.value()); left > 0; --left)
    times.push_back(time += exponential(random));
  for (const double each : times)
    workload.recorded.push_back({begin + each / time * load.stage, load.prompt_tokens, load.output_tokens});
}

[[nodiscard]] EngineOptions options_of(const ServedLoad& load, const sim::Machine& machine) {
  EngineOptions options;
  options.block_size = machine.stack.defaults.block_size;
  options.weights = published_weights(load.weights.empty() ? "fp16" : load.weights).format;
  options.enable_prefix_caching = load.enable_prefix_caching;
  options.max_num_seqs = load.max_num_seqs;
  options.max_num_batched_tokens = load.max_num_batched_tokens;
  options.gpu_memory_utilization = load.gpu_memory_utilization;
  return options;
}

[[nodiscard]] sim::SimulatedServer server_of(const ServedLoad& load, const ServedChoices& choices) {
  const auto file = try_find_machine(load.machine);
  if (!file) throw InputError("no machine '" + load.machine + "' under hwmodels");
  sim::Machine machine = config::read_machine_file(*file);
  machine.stack = resolve_stack(choices.stack, machine);
  if (choices.change) choices.change(machine.stack);
  const EngineOptions options = options_of(load, machine);
  sim::SimulatedServer server{std::move(machine), read_model_shape(find_model(shipped_model(load.model))), options};
  server.deployment.tensor_parallel_size = load.devices;
  if (const auto found = problems(server); !found.empty()) throw InputError(found.front());
  require_served(server.machine, server.model, options);
  return server;
}

void simulate(LoadRun& run, const ServedChoices& choices) {
  try {
    RequestWorkload workload = requests_of(*run.load, choices);
    workload.sampling = default_sampling(run.load->model);
    run.metrics = sim::simulate(server_of(*run.load, choices), workload).metrics;
  } catch (const files::ReservedFileError&) {
    throw;
  } catch (const InputError& error) {
    run.unpriced = error.what();
  }
}

[[nodiscard]] std::vector<LoadRun> distinct_loads(const std::vector<ServedFigure>& figures) {
  std::vector<LoadRun> runs;
  for (const ServedFigure& figure : figures)
    if (std::ranges::none_of(runs, [&](const LoadRun& run) { return *run.load == figure.load; }))
      runs.push_back({&figure.load, ServingMetrics(), ""});
  return runs;
}

void simulate_all(std::vector<LoadRun>& runs, const ServedChoices& choices) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&](std::uint64_t index) {
      simulate(runs[index], choices);
      return std::string();
    };
  };
  sim::work_in_order({0, runs.size()}, choices.threads > 0 ? choices.threads : cores, make_worker,
                     [](std::uint64_t, const std::string&) {});
}

[[nodiscard]] bool is_whole_run(const ServedFigure& figure) { return figure.stage == "all"; }

[[nodiscard]] Seconds figure_of(const ServingMetrics& metrics, ServedMetric metric) {
  switch (metric) {
    case ServedMetric::e2e_mean:
      return metrics.latency().mean();
    case ServedMetric::e2e_p90:
      return metrics.latency().quantile(0.9);
    case ServedMetric::e2e_p99:
      return metrics.latency().quantile(0.99);
    case ServedMetric::itl_mean:
      return metrics.itl().mean();
    case ServedMetric::ttft_mean:
      return metrics.ttft().mean();
    case ServedMetric::ttft_p90:
      return metrics.ttft().quantile(0.9);
    case ServedMetric::ttft_p99:
      return metrics.ttft().quantile(0.99);
  }
  return {};
}

}  // namespace

RequestWorkload requests_of(const ServedLoad& load, const ServedChoices& choices) {
  RequestWorkload workload;
  std::mt19937_64 random(choices.seed);
  Seconds begin;
  for (const double rate : load.requests_per_second) {
    add_stage(begin, load, rate, random, workload);
    begin += load.stage;
  }
  workload.requests = static_cast<int>(workload.recorded.size());
  workload.arrival = ArrivalKind::replay;
  workload.prefix_tokens = std::min(choices.prefix_tokens.value_or(load.prompt_tokens), load.prompt_tokens - 1);
  workload.prefixes = choices.prompts;
  workload.seed = choices.seed;
  return workload;
}

std::string shipped_model(const std::string& hub_name) {
  const std::string name = lower_case(hub_name.substr(hub_name.rfind('/') + 1));
  for (std::size_t end = name.size(); end != std::string::npos && end > 0; end = name.rfind('-', end - 1))
    if (const auto found = try_find_model(name.substr(0, end))) return found->filename().string();
  throw InputError("no model of scenarios/models begins the name '" + name + "'");
}

SamplingParams default_sampling(const std::string& hub_name) {
  return read_generation_config(find_model(shipped_model(hub_name))).sampling;
}

std::vector<ServedScore> score_served(std::span<const ServedRow> rows, std::span<const ServedFigure> figures) {
  std::map<std::pair<std::string, ServedMetric>, std::vector<double>> ours, rivals;
  for (const ServedRow& row : rows)
    if (is_whole_run(row.figure)) ours[{"dculab", row.figure.metric}].push_back(row.error());
  for (const ServedFigure& figure : figures)
    for (const auto& [rival, time] : figure.predicted_by)
      if (is_whole_run(figure)) rivals[{rival, figure.metric}].push_back(time / figure.measured - 1);
  std::vector<ServedScore> scores;
  for (const auto* errors : {&ours, &rivals})
    for (const auto& [key, each] : *errors)
      scores.push_back({key.first, key.second, sim::summarize_errors(std::span<const double>(each))});
  return scores;
}

std::vector<CommonScore> score_common(std::span<const ServedRow> rows) {
  struct Errors {
    std::vector<double> ours, theirs;
  };
  std::map<std::pair<std::string, ServedMetric>, Errors> rivals;
  for (const ServedRow& row : rows)
    for (const auto& [rival, time] : row.figure.predicted_by) {
      if (!is_whole_run(row.figure)) continue;
      Errors& errors = rivals[{rival, row.figure.metric}];
      errors.ours.push_back(row.error());
      errors.theirs.push_back(time / row.figure.measured - 1);
    }
  std::vector<CommonScore> scores;
  for (const auto& [key, errors] : rivals)
    scores.push_back({key.first, key.second, sim::summarize_errors(std::span<const double>(errors.ours)),
                      sim::summarize_errors(std::span<const double>(errors.theirs))});
  return scores;
}

ServedRuns validate_served(const std::vector<ServedFigure>& figures, const ServedChoices& choices) {
  std::vector<LoadRun> runs = distinct_loads(figures);
  simulate_all(runs, choices);
  ServedRuns served;
  for (const ServedFigure& figure : figures) {
    const LoadRun& run = *std::ranges::find_if(runs, [&](const LoadRun& each) { return *each.load == figure.load; });
    if (run.unpriced.empty())
      served.rows.push_back({figure, figure_of(run.metrics, figure.metric)});
    else
      served.unpriced.push_back({figure.line, figure.experiment, run.unpriced, run.unpriced});
  }
  served.scores = score_served(served.rows, figures);
  served.common = score_common(served.rows);
  return served;
}

}  // namespace dculab::study

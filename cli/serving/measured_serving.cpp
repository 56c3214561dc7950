#include "cli/serving/measured_serving.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "cli/output/progress.hpp"
#include "cli/scenario/engine_weights.hpp"
#include "cli/serving/serving_report.hpp"
#include "config/unit_text.hpp"
#include "engine/executors/open_executor.hpp"
#include "engine/measure/step_sample.hpp"
#include "engine/measure/trace_header.hpp"
#include "sim/memory/driven_out.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

constexpr std::array<const char*, 16> kCompared{"steps",
                                                "output_tokens",
                                                "total_time",
                                                "requests_per_second",
                                                "output_tokens_per_second",
                                                "goodput",
                                                "ttft_mean",
                                                "ttft_p50",
                                                "ttft_p99",
                                                "tpot_mean",
                                                "tpot_p50",
                                                "tpot_p99",
                                                "itl_p50",
                                                "itl_p99",
                                                "latency_p50",
                                                "latency_p99"};

[[nodiscard]] bool is_time(const std::string& metric) {
  const auto known = std::ranges::find(config::metrics(), metric, &config::Metric::name);
  return known != config::metrics().end() && known->kind == config::MetricKind::time;
}

// Whatever is touched for the first time is touched here: predictions are of a server that has been running.
void warm_up(engine::ModelExecutor& executor, const EngineOptions& options, const RequestWorkload& workload) {
  executor.fill_kv_cache(workload.seed);
  RequestWorkload few = workload;
  few.requests = std::min(workload.requests, 4);
  few.arrival = ArrivalKind::all_at_once;
  few.output = {.center = 4};
  for (RecordedRequest& recorded : few.recorded) recorded.output_tokens = 4;
  static_cast<void>(engine::serve(executor, options, few));
}

}  // namespace

MeasuredServing measure(const MeasuredServer& server, const RequestWorkload& workload) {
  const config::Scenario& scenario = server.scenario;
  engine::ModelWeights weights = load_or_make_weights(study::find_model(scenario.model.name), server.options.weights);
  const engine::OpenDevice device = engine::open_device({});
  const Bytes block = engine::kv_block_bytes(weights.shape, server.options.block_size, server.options.kv_cache_dtype);
  const auto executor = engine::make_executor(device, std::move(weights),
                                              {.num_blocks = server.num_blocks,
                                               .block_size = server.options.block_size,
                                               .dtype = server.options.kv_cache_dtype,
                                               .max_num_seqs = server.options.max_num_seqs,
                                               .residual_tokens = server.options.kv_residual_tokens,
                                               .num_host_blocks = num_host_blocks(server.options, block)},
                                              server.options, server.threads);
  executor->set_op_timing(server.op_timing);
  warm_up(*executor, server.options, workload);
  ProgressBar bar;
  int finished = 0;
  engine::StepSample sample(executor->shape(), server.options, server.most_trace_steps);
  std::optional<sim::CacheWarmth> warmth;
  if (server.machine != nullptr) warmth.emplace(*server.machine);
  MeasuredServing result;
  result.served = engine::serve(
      *executor, server.options, workload, scenario.slo,
      {.on_finished = [&] { bar.update("serving", static_cast<double>(++finished) / workload.requests); },
       .on_step = [&](const ServedStep& step) { sample.add(step, warmth ? warmth->cold_share(step.begin) : 0); }});
  result.trace = {engine::trace_header(*executor, "steps of a run that served requests, each once"), sample.steps()};
  return result;
}

std::map<std::string, double> compared_figures(const ServingMetrics& metrics, std::int64_t num_steps) {
  std::map<std::string, double> figures = serving_figures(metrics);
  figures["steps"] = static_cast<double>(num_steps);
  figures["output_tokens"] = static_cast<double>(metrics.output_tokens());
  return figures;
}

Cell figure_cell(const std::string& metric, double value) {
  return {is_time(metric) ? config::short_text(Seconds(value)) : number(value), value};
}

Table comparison_table(const std::map<std::string, double>& simulated, const std::map<std::string, double>& measured) {
  Table table;
  table.title = "Simulated against measured on this machine";
  table.columns = {"metric", "simulated", "measured", "off by"};
  for (const std::string metric : kCompared) {
    if (!simulated.contains(metric) || !measured.contains(metric)) continue;
    const double real = measured.at(metric);
    const double off = real > 0 ? simulated.at(metric) / real - 1 : 0;
    table.rows.push_back({metric, figure_cell(metric, simulated.at(metric)), figure_cell(metric, real),
                          Cell((off < 0 ? "" : "+") + percent(off, 2), off)});
  }
  return table;
}

Json comparison_json(const std::map<std::string, double>& simulated, const std::map<std::string, double>& measured) {
  Json json = Json::object();
  for (const std::string metric : kCompared)
    if (simulated.contains(metric) && measured.contains(metric))
      json[metric] = {{"simulated", simulated.at(metric)}, {"measured", measured.at(metric)}};
  return json;
}

}  // namespace dculab::cli

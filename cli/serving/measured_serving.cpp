#include "cli/serving/measured_serving.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "cli/output/progress.hpp"
#include "cli/scenario/engine_weights.hpp"
#include "cli/serving/serving_report.hpp"
#include "config/unit_text.hpp"
#include "engine/executors/open_executor.hpp"
#include "engine/measure/alone_latency.hpp"
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
void warm_up(engine::OpenModel& model, const EngineOptions& options, const RequestWorkload& workload) {
  model.executor->fill_kv_cache(workload.seed);
  RequestWorkload few = workload;
  few.requests = std::min(workload.requests, 4);
  few.arrival = ArrivalKind::all_at_once;
  few.output = {.center = 4};
  for (RecordedRequest& recorded : few.recorded) recorded.output_tokens = 4;
  static_cast<void>(engine::serve(model, options, few));
}

// With the blocks that the server is given.
[[nodiscard]] engine::OpenModel open(const MeasuredServer& server) {
  const auto folder = study::find_model(server.scenario.model.name);
  engine::ModelWeights weights = load_or_make_weights(folder, server.options.weights);
  const SpeculativeMethod method = server.options.speculative_config.method;
  engine::DraftWeights draft;
  if (method == SpeculativeMethod::draft_model && !server.speculative_model.empty()) {
    draft.model = load_or_make_weights(study::find_model(server.speculative_model), server.options.weights);
    engine::require_draft_of(weights.shape, draft.model->shape, server.options);
  }
  if (method == SpeculativeMethod::medusa)
    draft.medusa = engine::load_medusa_weights(study::find_model(server.speculative_model), weights);
  if (method == SpeculativeMethod::mtp)
    draft.mtp = engine::load_mtp_weights(folder, engine::WeightMemory::huge_pages, weights);
  return engine::open_model(std::move(weights), server.options, std::move(draft), engine::open_device({}),
                            server.num_blocks, server.threads);
}

}  // namespace

MeasuredServing measure(const MeasuredServer& server, const RequestWorkload& workload) {
  const config::Scenario& scenario = server.scenario;
  engine::OpenModel model = open(server);
  const engine::ModelExecutor& executor = *model.executor;
  model.executor->set_op_timing(server.op_timing);
  warm_up(model, server.options, workload);
  engine::ServeCallbacks callbacks;
  std::optional<engine::MeasuredAloneLatency> alone;
  if (scenario.slo.slowdown) {
    alone.emplace(model, server.options, workload);
    callbacks.alone_latency = [&alone](int prompt, int output) { return alone->latency(prompt, output); };
  }
  ProgressBar bar;
  int finished = 0;
  engine::StepSample sample(executor.shape(), server.options, server.most_trace_steps);
  std::optional<sim::CacheWarmth> warmth;
  if (server.machine != nullptr) warmth.emplace(*server.machine);
  MeasuredServing result;
  callbacks.on_finished = [&] { bar.update("serving", static_cast<double>(++finished) / workload.requests); };
  callbacks.on_step = [&](const ServedStep& step) { sample.add(step, warmth ? warmth->cold_share(step.begin) : 0); };
  result.served = engine::serve(model, server.options, workload, scenario.slo, callbacks);
  result.trace = {engine::trace_header(executor, "steps of a run that served requests, each once"), sample.steps()};
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

#include "cli/serving/measured_serving.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "cli/output/progress.hpp"
#include "cli/scenario/engine_weights.hpp"
#include "cli/serving/serving_report.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "engine/executors/open_executor.hpp"
#include "engine/measure/alone_latency.hpp"
#include "engine/measure/step_sample.hpp"
#include "engine/measure/trace_header.hpp"
#include "sim/memory/driven_out.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

constexpr std::array<const char*, 17> kCompared{"steps",
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
                                                "latency_p99",
                                                "requests_with_few_heads"};

[[nodiscard]] bool is_time(const std::string& metric) {
  const auto known = std::ranges::find(config::metrics(), metric, &config::Metric::name);
  return known != config::metrics().end() && known->kind == config::MetricKind::time;
}

// Whatever is touched for the first time is touched here: predictions are of a server that has been running.
void warm_up(engine::OpenModel& model, EngineOptions options, const RequestWorkload& workload) {
  model.executor->fill_kv_cache(workload.seed);
  RequestWorkload few = workload;
  few.requests = std::min(workload.requests, 4);
  few.arrival = ArrivalKind::all_at_once;
  few.output = {.center = 4};
  for (RecordedRequest& recorded : few.recorded) recorded.output_tokens = 4;
  if (!options.groups_by_load) return static_cast<void>(engine::serve(model, options, few));
  for (const HeadAssignment heads : {HeadAssignment::many, HeadAssignment::few}) {
    options.groups_by_load->heads = heads;
    static_cast<void>(engine::serve(model, options, few));
  }
}

// A model's weights with those that draft for it.
struct ServedWeights {
  engine::ModelWeights model;
  engine::DraftWeights draft{};
  std::optional<engine::ModelWeights> few_heads{};  // of options with groups_by_load
};

[[nodiscard]] ServedWeights load_served(const MeasuredServer& server) {
  const auto folder = study::find_model(server.scenario.model.name);
  ServedWeights weights{.model = load_or_make_weights(folder, server.options.weights)};
  const SpeculativeMethod method = server.options.speculative_config.method;
  engine::DraftWeights& draft = weights.draft;
  if (method == SpeculativeMethod::draft_model && !server.speculative_model.empty()) {
    const auto draft_folder = study::find_model(server.speculative_model);
    const WeightFormat own = engine::read_model_shape(draft_folder).layer_format();
    draft.model = load_or_make_weights(draft_folder, server.draft_weights.value_or(own));
    engine::require_draft_of(weights.model.shape, draft.model->shape, server.options);
  }
  if (method == SpeculativeMethod::medusa)
    draft.medusa = engine::load_medusa_weights(study::find_model(server.speculative_model), weights.model);
  if (method == SpeculativeMethod::mtp)
    draft.mtp = engine::load_mtp_weights(folder, engine::WeightMemory::huge_pages, weights.model);
  if (!server.options.groups_by_load) return weights;
  const config::FewHeadsChoice& few = server.scenario.few_heads;
  weights.few_heads = engine::load_few_heads(weights.model, few.num_key_value_heads,
                                             few.model.empty() ? "" : study::find_model(few.model), server.options);
  return weights;
}

// What a run leaves behind: steps for the trace, and how far it has got.
class Watch {
 public:
  Watch(const MeasuredServer& server, const ModelShape& model, int requests)
      : requests_(requests), sample_(model, server.options, server.most_trace_steps) {
    if (server.machine == nullptr) return;
    warmth_.assign(static_cast<std::size_t>(server.replicas.replicas()), sim::CacheWarmth(*server.machine));
  }

  void set_few_heads(const ModelShape& model) { sample_.set_few_heads(model); }
  void finish() { bar_.update("serving", static_cast<double>(++finished_) / requests_); }
  void see(const ServedStep& step, std::size_t replica) {
    sample_.add(step, warmth_.empty() ? 0 : warmth_[replica].cold_share(step.begin));
  }
  [[nodiscard]] Trace trace(const engine::ModelExecutor& executor) const {
    return {engine::trace_header(executor, "steps of a run that served requests, each once"), sample_.steps()};
  }

 private:
  ProgressBar bar_;
  int requests_, finished_ = 0;
  engine::StepSample sample_;
  std::vector<sim::CacheWarmth> warmth_;  // of each replica's devices, where the machine is known
};

MeasuredServing measure_one(const MeasuredServer& server, ServedWeights weights, const RequestWorkload& workload) {
  engine::OpenModel model = engine::open_model(std::move(weights.model), server.options, std::move(weights.draft),
                                               engine::open_device(server.device), server.num_blocks, server.threads);
  model.executor->set_op_timing(server.op_timing);
  if (weights.few_heads) engine::add_few_heads(model, *weights.few_heads, server.options);
  warm_up(model, server.options, workload);
  engine::ServeCallbacks callbacks;
  std::optional<engine::MeasuredAloneLatency> alone;
  if (server.scenario.slo.slowdown) {
    alone.emplace(model, server.options, workload);
    callbacks.alone_latency = [&alone](int prompt, int output) { return alone->latency(prompt, output); };
  }
  Watch watch(server, model.executor->shape(), workload.requests);
  if (weights.few_heads) watch.set_few_heads(weights.few_heads->shape);
  callbacks.on_finished = [&] { watch.finish(); };
  callbacks.on_step = [&](const ServedStep& step) { watch.see(step, 0); };
  MeasuredServing result;
  result.served = engine::serve(model, server.options, workload, server.scenario.slo, callbacks);
  result.trace = watch.trace(*model.executor);
  return result;
}

MeasuredServing measure_several(const MeasuredServer& server, const ServedWeights& weights,
                                const RequestWorkload& workload) {
  const auto replicas = engine::open_replicas(weights.model, server.options, weights.draft, server.num_blocks,
                                              server.threads, server.replicas.replicas());
  replicas->run([&](int, engine::OpenModel& model) {
    model.executor->set_op_timing(server.op_timing);
    if (weights.few_heads) engine::add_few_heads(model, *weights.few_heads, server.options);
    warm_up(model, server.options, workload);
  });
  Watch watch(server, replicas->executor(0).shape(), workload.requests);
  if (weights.few_heads) watch.set_few_heads(weights.few_heads->shape);
  const auto see = [&](const ServedStep& step, int replica) { watch.see(step, static_cast<std::size_t>(replica)); };
  MeasuredServing result;
  result.served = engine::serve_on_replicas(*replicas, server.options, server.replicas, workload, server.scenario.slo,
                                            {.on_finished = [&](const Sequence&) { watch.finish(); }, .on_step = see});
  result.trace = watch.trace(replicas->executor(0));
  return result;
}

}  // namespace

MeasuredServing measure(const MeasuredServer& server, const RequestWorkload& workload) {
  ServedWeights weights = load_served(server);
  if (server.replicas.replicas() == 1) return measure_one(server, std::move(weights), workload);
  return measure_several(server, weights, workload);
}

engine::ReplicaChoices replicas_here(const config::Scenario& scenario, const EngineOptions& options,
                                     const std::string& asking) {
  const sim::Deployment& deployment = scenario.deployment;
  const sim::ReplicaDevices devices = deployment.of(ReplicaRole::both);
  if (devices.devices() != 1 || deployment.prefill || deployment.decode || deployment.kv_store)
    throw InputError(asking, "runs replicas of one device each on this machine; leave what divides a model and " +
                                 std::string("kv_store out of deployment"));
  if (deployment.kv_transfer_bandwidth || deployment.kv_transfer_latency)
    throw InputError(asking, "hands the KV cache over through this machine's memory; leave deployment.kv_transfer out");
  if (deployment.replicas() > 1 && scenario.slo.slowdown)
    throw InputError(asking, "runs no request alone beside several replicas; leave slo.slowdown out");
  engine::ReplicaChoices choices{.data_parallel_size = deployment.data_parallel_size,
                                 .routing = deployment.routing,
                                 .prefill_replicas = deployment.prefill_replicas,
                                 .decode_replicas = deployment.decode_replicas,
                                 .role_switching = deployment.role_switching};
  if (const auto found = engine::problems(choices, options); !found.empty()) throw InputError(asking, found.front());
  return choices;
}

Table served_replica_table(const engine::ServedWorkload& served) {
  Table table;
  table.title = "Replicas";
  table.columns = {"replica", "requests", "steps", "busy", "preemptions", "handed over", "copied out", "copied in"};
  int number = 0;
  for (const engine::ServedReplica& replica : served.replicas) {
    const double busy = replica.busy / served.metrics.duration();
    std::string title = std::to_string(++number);
    if (replica.role != ReplicaRole::both) title += " " + std::string(name(replica.role));
    table.rows.push_back({title, std::to_string(replica.requests), std::to_string(replica.num_steps),
                          Cell(percent(busy), busy), std::to_string(replica.num_preemptions),
                          config::short_text(replica.handed_over_bytes),
                          Cell(config::short_text(replica.sending), replica.sending.value()),
                          Cell(config::short_text(replica.receiving), replica.receiving.value())});
  }
  return table;
}

Json served_replica_json(const engine::ServedWorkload& served) {
  Json json = Json::array();
  for (const engine::ServedReplica& replica : served.replicas)
    json.push_back({{"role", name(replica.role)},
                    {"role_switches", replica.role_switches},
                    {"requests", replica.requests},
                    {"steps", replica.num_steps},
                    {"preemptions", replica.num_preemptions},
                    {"utilization", replica.busy / served.metrics.duration()},
                    {"prompts_handed_over", replica.handed_over},
                    {"bytes_handed_over", replica.handed_over_bytes.value()},
                    {"sending_seconds", replica.sending.value()},
                    {"receiving_seconds", replica.receiving.value()}});
  return json;
}

std::map<std::string, double> compared_figures(const ServingMetrics& metrics, std::int64_t num_steps) {
  std::map<std::string, double> figures = study::serving_figures(metrics);
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

#include "study/measure/measured_serving.hpp"

#include <algorithm>
#include <optional>
#include <thread>

#include "core/error.hpp"
#include "engine/executors/open_executor.hpp"
#include "engine/measure/alone_latency.hpp"
#include "engine/measure/step_sample.hpp"
#include "engine/measure/trace_header.hpp"
#include "model/few_heads.hpp"
#include "model/folder/model_config.hpp"
#include "sim/hardware/process_share.hpp"
#include "sim/memory/cache_pollution.hpp"
#include "sim/memory/capacity.hpp"
#include "study/measure/engine_weights.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

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
  const auto folder = find_model(server.scenario.model.name);
  ServedWeights weights{.model = load_or_make_weights(folder, server.options.weights)};
  const SpeculativeMethod method = server.options.speculative_config.method;
  engine::DraftWeights& draft = weights.draft;
  if (method == SpeculativeMethod::draft_model && !server.speculative_model.empty()) {
    const auto draft_folder = find_model(server.speculative_model);
    const WeightFormat own = read_model_shape(draft_folder).layer_format();
    draft.model = load_or_make_weights(draft_folder, server.draft_weights.value_or(own));
    engine::require_draft_of(weights.model.shape, draft.model->shape, server.options);
  }
  if (method == SpeculativeMethod::medusa)
    draft.medusa = engine::load_medusa_weights(find_model(server.speculative_model), weights.model);
  if (method == SpeculativeMethod::mtp)
    draft.mtp = engine::load_mtp_weights(folder, engine::WeightMemory::huge_pages, weights.model);
  if (!server.options.groups_by_load) return weights;
  const config::FewHeadsChoice& few = server.scenario.few_heads;
  weights.few_heads = engine::load_few_heads(weights.model, few.num_key_value_heads,
                                             few.model.empty() ? "" : find_model(few.model), server.options);
  return weights;
}

// What a run leaves behind: steps for the trace, and how far it has got.
class Watch {
 public:
  Watch(const MeasuredServer& server, const ModelShape& model, int requests)
      : progress_(server.progress), requests_(requests), sample_(model, server.options, server.most_trace_steps) {
    if (server.machine == nullptr) return;
    warmth_.assign(static_cast<std::size_t>(server.replicas.replicas()), sim::CacheWarmth(*server.machine));
  }

  void set_few_heads(const ModelShape& model) { sample_.set_few_heads(model); }
  void finish() {
    ++finished_;
    if (progress_) progress_("serving", static_cast<double>(finished_) / requests_);
  }
  void see(const ServedStep& step, std::size_t replica) {
    sample_.add(step, warmth_.empty() ? 0 : warmth_[replica].cold_share(step.begin));
  }
  [[nodiscard]] Trace trace(const engine::ModelExecutor& executor) const {
    return {engine::trace_header(executor, "steps of a run that served requests, each once"), sample_.steps()};
  }

 private:
  const engine::BenchProgress& progress_;
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

// What the engine here runs is a CPU's plan.
void require_same(const sim::Machine& machine, const config::Scenario& scenario, const std::string& remedy) {
  if (machine.kind != lower::DeviceKind::cpu)
    throw InputError("--measure", "runs this machine's CPU engine, and " + machine.name + " is a GPU; " + remedy);
  const int threads = scenario.measure.threads > 0 ? scenario.measure.threads : machine.compute_units;
  if (threads != machine.compute_units)
    throw InputError("--measure", "measure.threads is " + std::to_string(threads) + ", and " + machine.name + " has " +
                                      std::to_string(machine.compute_units) + " cores: leave it out");
  if (const unsigned cores = std::thread::hardware_concurrency(); cores > 0 && threads > static_cast<int>(cores))
    throw InputError("--measure", machine.name + " has " + std::to_string(threads) + " cores, this machine " +
                                      std::to_string(cores) + "; " + remedy);
  if (!scenario.model.overrides.empty())
    throw InputError("--measure", "runs the model as its folder has it; leave changes of its shape out");
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

void make_measurable(sim::SimulatedServer& server, const config::Scenario& scenario, const std::string& remedy) {
  if (server.options.speculative_config.enabled())
    throw InputError("--measure", "serves without drafts; leave engine.speculative_config out");
  require_same(server.machine, scenario, remedy);
  const int replicas = replicas_here(scenario, server.options, "--measure").replicas();
  if (replicas > server.machine.compute_units)
    throw InputError("--measure", std::to_string(replicas) + " replicas do not get a core each of " +
                                      server.machine.name + ", which has " +
                                      std::to_string(server.machine.compute_units));
  server.machine = sim::process_share(server.machine, replicas);
  sim::DraftMemory beside;
  if (server.few_heads) beside.weights = few_heads_footprint(server.model, *server.few_heads, server.options.weights);
  const std::int64_t fit = sim::capacity(server.machine, server.model, server.options, 1, beside).num_blocks;
  const std::int64_t longest = server.model.max_position_embeddings / server.options.block_size + 1;
  server.num_blocks =
      static_cast<int>(std::min<std::int64_t>({fit, longest * server.options.max_num_seqs, kMostBlocks}));
}

}  // namespace dculab::study

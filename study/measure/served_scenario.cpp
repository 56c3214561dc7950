#include "study/measure/served_scenario.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.hpp"
#include "engine/generate/open_model.hpp"
#include "model/draft_heads.hpp"
#include "model/folder/model_config.hpp"
#include "model/kv/kv_bytes.hpp"
#include "study/measure/measured_serving.hpp"
#include "study/scenario/few_heads.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/serving_scenario.hpp"

namespace dculab::study {
namespace {

// What drafts with a KV cache of its own.
struct DraftHere {
  ModelShape shape;
  WeightFormat weights;
};

[[nodiscard]] std::optional<DraftHere> draft_of(const config::SpeculationChoice& choice, const ModelShape& model,
                                                const EngineOptions& options) {
  const SpeculativeMethod method = options.speculative_config.method;
  if (method == SpeculativeMethod::mtp) return DraftHere{mtp_shape(model), options.weights};
  if (method != SpeculativeMethod::draft_model || choice.model.empty()) return std::nullopt;
  ModelShape draft = read_model_shape(find_model(choice.model));
  engine::require_draft_of(model, draft, options);
  const WeightFormat weights = choice.weights.value_or(draft.layer_format());
  return DraftHere{std::move(draft), weights};
}

// What drafts: as it is said beside the scenario, or else as the scenario does.
[[nodiscard]] config::SpeculationChoice drafter_of(const config::Scenario& scenario,
                                                   const std::optional<DraftChoice>& asked) {
  const SpeculativeMethod method = scenario.options.speculative_config.method;
  if (asked && drafts(scenario))
    throw InputError(scenario.file,
                     "engine.speculative_config: the scenario says what drafts; leave it or the options "
                     "of speculation out");
  if (method == SpeculativeMethod::medusa)
    throw InputError(scenario.file,
                     "engine.speculative_config: a scenario does not name the folder of Medusa's heads; "
                     "leave it out and give --medusa DIR");
  if (!asked) return scenario.speculation;
  config::SpeculationChoice choice;
  choice.model = asked->model;
  return choice;
}

[[nodiscard]] engine::ReplicaChoices replicas_of(const config::Scenario& scenario, const EngineOptions& options,
                                                 const engine::DeviceChoice& device) {
  const engine::ReplicaChoices replicas =
      replicas_here(scenario, options, scenario.file + ": deployment: the engine here");
  if (replicas.replicas() > 1 && device.kind != engine::DeviceKind::cpu)
    throw InputError("--device", "replicas share the CPU; leave --device out, or deployment.data_parallel_size");
  if (!scenario.model.overrides.empty())
    throw InputError(scenario.file, "model: is served as its folder has it; leave changes of its shape out");
  return replicas;
}

// The scenario's server on this machine, with the KV blocks that its memory has room for.
[[nodiscard]] MeasuredServer server_here(const config::Scenario& scenario, const EngineOptions& options,
                                         const ModelShape& model, const ServedScenarioQuestion& question,
                                         const config::SpeculationChoice& drafter) {
  const engine::ReplicaChoices replicas = replicas_of(scenario, options, question.device);
  const int asked = question.threads > 0 ? question.threads : scenario.measure.threads;
  const Bytes swap = options.preemption_mode == PreemptionMode::swap ? options.swap_space : Bytes();
  const engine::OpenDevice here = engine::open_device(question.device);
  // Weights and swapped blocks are not in memory yet.
  const auto taken_by = [&](const ModelShape& shape, WeightFormat weights) {
    EngineOptions own = options;
    own.weights = weights;
    return static_cast<double>(replicas.replicas()) * engine::memory_besides_kv(here, shape, own) +
           (here.gpu ? Bytes() : weight_footprint(shape, weights));
  };
  Bytes taken = taken_by(model, options.weights) + swap, draft_block;
  if (const auto few = resolve_few_heads(scenario, model, options))
    taken += few_heads_footprint(model, *few, options.weights);
  if (const auto draft = draft_of(drafter, model, options)) {
    taken += taken_by(draft->shape, draft->weights);
    draft_block = kv_block_bytes(draft->shape, options);
  }
  const Bytes free = std::max(Bytes(), here.free_memory() - taken) / static_cast<double>(replicas.replicas());
  return {.scenario = scenario,
          .options = options,
          .num_blocks = engine::choose_num_blocks(model, options, std::nullopt, free, draft_block),
          .threads = std::max(1, engine::thread_count(asked) / replicas.replicas()),
          .op_timing = question.op_timing,
          .device = question.device,
          .replicas = replicas,
          .speculative_model = drafter.model,
          .draft_weights = drafter.weights};
}

[[nodiscard]] EngineOptions options_here(const config::Scenario& scenario, const ModelShape& model,
                                         const ServedScenarioQuestion& question) {
  const auto kind = question.device.kind == engine::DeviceKind::cpu ? lower::DeviceKind::cpu : lower::DeviceKind::gpu;
  EngineOptions options = engine::options_on(question.device, resolve_options(scenario, model, kind));
  if (question.drafter) options.speculative_config = question.drafter->config;
  if (const auto found = problems(options); !found.empty()) throw InputError(found.front());
  return options;
}

[[nodiscard]] ServedSweepPoint serve_point(const config::SweepPoint& point, const ServedScenarioQuestion& question,
                                           const engine::BenchProgress& progress, Trace& trace) {
  const config::Scenario& scenario = point.scenario;
  ServedSweepPoint served;
  served.point = point;
  served.model = resolve_model(scenario);
  served.options = options_here(scenario, served.model, question);
  MeasuredServer server =
      server_here(scenario, served.options, served.model, question, drafter_of(scenario, question.drafter));
  server.progress = progress;
  MeasuredServing run = measure(server, resolve_requests(scenario, served.model));
  served.few_heads = resolve_few_heads(scenario, served.model, served.options);
  served.num_blocks = server.num_blocks;
  served.served = std::move(run.served);
  served.header = run.trace.header;
  if (const std::string of = choices_text(point); !of.empty())
    for (TraceStep& step : run.trace.steps) step.id.insert(0, of + ", ");
  trace.header = std::move(run.trace.header);
  std::ranges::move(run.trace.steps, std::back_inserter(trace.steps));
  return served;
}

}  // namespace

ServedScenario serve_scenario(const ServedScenarioQuestion& question, const engine::BenchProgress& progress) {
  refuse_machine_axes(question.scenario, "bench runs on this machine; leave it out, or ask `dculab simulate`");
  ServedScenario answer;
  for (const config::SweepPoint& point : config::sweep_points(question.scenario))
    answer.points.push_back(serve_point(point, question, progress, answer.trace));
  return answer;
}

}  // namespace dculab::study

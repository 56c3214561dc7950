#include "cli/bench/scenario_bench.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/progress.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "engine/generate/open_model.hpp"
#include "files/output.hpp"
#include "model/draft_heads.hpp"
#include "model/few_heads.hpp"
#include "model/folder/model_config.hpp"
#include "model/kv/kv_bytes.hpp"
#include "present/engine/draft_report.hpp"
#include "present/study/comparison_table.hpp"
#include "present/study/serving_report.hpp"
#include "study/evaluate/serving_figures.hpp"
#include "study/measure/measured_serving.hpp"
#include "study/scenario/few_heads.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/serving_scenario.hpp"
#include "study/scenario/speculation.hpp"

namespace dculab::cli {
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
  ModelShape draft = read_model_shape(study::find_model(choice.model));
  engine::require_draft_of(model, draft, options);
  const WeightFormat weights = choice.weights.value_or(draft.layer_format());
  return DraftHere{std::move(draft), weights};
}

// What drafts: as the options say, or else as the scenario does.
[[nodiscard]] config::SpeculationChoice drafter_of(const config::Scenario& scenario,
                                                   const SpeculationChoices& choices) {
  const SpeculativeMethod method = scenario.options.speculative_config.method;
  if (choices.asked() && study::drafts(scenario))
    throw InputError(scenario.file,
                     "engine.speculative_config: the scenario says what drafts; leave it or the options "
                     "of speculation out");
  if (method == SpeculativeMethod::medusa)
    throw InputError(scenario.file,
                     "engine.speculative_config: a scenario does not name the folder of Medusa's heads; "
                     "leave it out and give --medusa DIR");
  if (!choices.asked()) return scenario.speculation;
  config::SpeculationChoice choice;
  choice.model = choices.folder();
  return choice;
}

[[nodiscard]] study::MeasuredServer server_here(const config::Scenario& scenario, const EngineOptions& options,
                                                const ModelShape& model, const ScenarioBenchChoices& choices,
                                                const config::SpeculationChoice& drafter) {
  const engine::ReplicaChoices replicas =
      study::replicas_here(scenario, options, scenario.file + ": deployment: the engine here");
  if (replicas.replicas() > 1 && choices.device.kind != engine::DeviceKind::cpu)
    throw InputError("--device", "replicas share the CPU; leave --device out, or deployment.data_parallel_size");
  if (!scenario.model.overrides.empty())
    throw InputError(scenario.file, "model: is served as its folder has it; leave changes of its shape out");
  const int asked = choices.threads > 0 ? choices.threads : scenario.measure.threads;
  const Bytes swap = options.preemption_mode == PreemptionMode::swap ? options.swap_space : Bytes();
  const engine::OpenDevice here = engine::open_device(choices.device);
  // Weights and swapped blocks are not in memory yet.
  const auto taken_by = [&](const ModelShape& shape, WeightFormat weights) {
    EngineOptions own = options;
    own.weights = weights;
    return static_cast<double>(replicas.replicas()) * engine::memory_besides_kv(here, shape, own) +
           (here.gpu ? Bytes() : weight_footprint(shape, weights));
  };
  Bytes taken = taken_by(model, options.weights) + swap, draft_block;
  if (const auto few = study::resolve_few_heads(scenario, model, options))
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
          .device = choices.device,
          .replicas = replicas,
          .speculative_model = drafter.model,
          .draft_weights = drafter.weights};
}

[[nodiscard]] std::optional<present::HeadSetFigures> head_sets_of(const config::Scenario& scenario,
                                                                  const ModelShape& model, const EngineOptions& options,
                                                                  const engine::ServedWorkload& served) {
  const auto few = study::resolve_few_heads(scenario, model, options);
  if (!few) return std::nullopt;
  return present::HeadSetFigures{.counts = served.head_sets,
                                 .many = model.heads().num_key_value_heads,
                                 .few = few->model.heads().num_key_value_heads,
                                 .few_weights = few_heads_footprint(model, *few, options.weights)};
}

void add_point(const config::SweepPoint& point, const engine::ServedWorkload& served, int num_blocks,
               const std::optional<present::HeadSetFigures>& head_sets, present::Report& report) {
  std::string title = study::choices_text(point);
  present::Json json{{"choices", present::Json::object()}};
  for (const auto& [key, value] : point.choices) json["choices"][key] = value;
  for (const std::string& line : present::throughput_lines(served.metrics, point.scenario.slo))
    title += (title.empty() ? "" : "\n") + line;
  title += "\n" + std::to_string(served.num_steps) + " steps, " + std::to_string(served.num_preemptions) +
           " preemptions, KV blocks used at most: " + std::to_string(served.timeline.most_used_blocks()) + " of " +
           std::to_string(num_blocks * std::max<std::int64_t>(1, std::ssize(served.replicas)));
  const present::DraftFigures drafts{.counts = served.drafts, .drafting = served.drafting, .verifying = served.busy};
  if (drafts.counts.num_drafts > 0) title += "\n" + present::draft_summary(drafts);
  if (head_sets) title += "\n" + present::head_set_line(*head_sets);
  report.tables.push_back(present::latency_table(served.metrics));
  report.tables.back().title = title;
  const int engines = std::max(1, static_cast<int>(served.replicas.size()));
  if (engines > 1) report.tables.push_back(present::served_replica_table(served));
  report.tables.push_back(present::timeline_table(served.timeline, std::int64_t{num_blocks} * engines, engines));
  json["requests"] = served.metrics.requests();
  json["prompt_tokens"] = served.metrics.prompt_tokens();
  json["cached_prompt_tokens"] = served.metrics.cached_tokens();
  present::add_skipped(served.metrics.padding_tokens(), served.metrics.duplicate_tokens(), json);
  for (const auto& [metric, figure] : study::compared_figures(served.metrics, served.num_steps)) json[metric] = figure;
  json["busy_seconds"] = served.busy.value();
  json["preemptions"] = served.num_preemptions;
  json["num_blocks"] = num_blocks;
  json["most_used_blocks"] = served.timeline.most_used_blocks();
  if (engines > 1) json["replicas"] = present::served_replica_json(served);
  json["timeline"] = present::timeline_json(served.timeline);
  if (drafts.counts.num_drafts > 0) json["speculation"] = present::draft_json(drafts);
  if (head_sets) json["groups_by_load"] = present::head_set_json(*head_sets);
  report.json["runs"].push_back(std::move(json));
}

}  // namespace

present::Report bench_scenario(const ScenarioBenchChoices& choices) {
  const config::Scenario scenario = study::read_serving_scenario(choices.scenario, choices.set);
  present::Report report{
      "dculab/bench-scenario/1", {scenario.question}, {}, present::Json{{"runs", present::Json::array()}}};
  study::refuse_machine_axes(scenario, "bench runs on this machine; leave it out, or ask `dculab simulate`");
  Trace trace;
  ProgressBar bar;
  for (const config::SweepPoint& point : config::sweep_points(scenario)) {
    const ModelShape model = study::resolve_model(point.scenario);
    const auto kind = choices.device.kind == engine::DeviceKind::cpu ? lower::DeviceKind::cpu : lower::DeviceKind::gpu;
    EngineOptions options = engine::options_on(choices.device, study::resolve_options(point.scenario, model, kind));
    if (choices.speculation.asked()) options.speculative_config = speculative_config(choices.speculation);
    if (const auto found = problems(options); !found.empty()) throw InputError(found.front());
    study::MeasuredServer server =
        server_here(point.scenario, options, model, choices, drafter_of(point.scenario, choices.speculation));
    if (!choices.trace_file.empty()) server.op_timing = engine::OpTiming::on;
    server.progress = [&bar](const std::string& label, double share) { bar.update(label, share); };
    study::MeasuredServing run = study::measure(server, study::resolve_requests(point.scenario, model));
    bar.clear();
    if (report.heading.size() == 1) report.heading.push_back(run.trace.header.device + ", " + run.trace.header.build);
    const auto head_sets = head_sets_of(point.scenario, model, options, run.served);
    add_point(point, run.served, server.num_blocks, head_sets, report);
    trace.header = run.trace.header;
    if (const std::string of = study::choices_text(point); !of.empty())
      for (TraceStep& step : run.trace.steps) step.id.insert(0, of + ", ");
    trace.steps.insert(trace.steps.end(), run.trace.steps.begin(), run.trace.steps.end());
  }
  if (!choices.trace_file.empty()) files::write_file_atomically(choices.trace_file, config::trace_json_lines(trace));
  return report;
}

}  // namespace dculab::cli

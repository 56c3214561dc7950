#include "cli/bench/step_grid.hpp"

#include "cli/scenario/engine_choices.hpp"
#include "cli/scenario/retention_choices.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/weight_format_text.hpp"
#include "config/yaml_figure.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::cli {
namespace {

// As keys of a scenario, where a policy is asked for.
[[nodiscard]] std::vector<std::string> retention_keys(const std::string& policy, const KvRetention& sizes) {
  const RetentionPolicy asked = parse_option("--kv-retention", policy, parse_policy);
  if (asked == RetentionPolicy::all) return {};
  std::vector<std::string> set{"kv_cache.retention=" + std::string(name(asked))};
  for (const KvFigure& figure : kKvFigures) {
    const std::string key = "kv_cache." + std::string(figure.name) + "=";
    if (figure.share != nullptr && sizes.*figure.share > 0)
      set.push_back(key + config::figure_text(sizes.*figure.share));
    if (figure.count != nullptr && sizes.*figure.count > 0)
      set.push_back(key + config::figure_text(sizes.*figure.count));
  }
  return set;
}

// Where the axes meet.
struct GridPlace {
  std::string phase;
  int kv_heads = 0;  // 0: the model's own
  int block_size = 16;
  std::string kv_cache_dtype, retention;
  int context = 0, batch = 1;
};

[[nodiscard]] engine::BenchPoint make_point(const GridChoices& choices, const ModelShape& model, const GridPlace& place,
                                            engine::DeviceKind device) {
  const StepChoices step{.model = choices.model,
                         .machine = "host",
                         .phase = place.phase,
                         .batch = place.batch,
                         .context = place.context,
                         .block_size = place.block_size,
                         .kv_heads = place.kv_heads,
                         .kv_cache_dtype = place.kv_cache_dtype,
                         .weights = config::weight_format_text(model.layer_format()),
                         .set = retention_keys(place.retention, choices.retention_sizes)};
  const config::Scenario scenario = to_scenario(step);
  ModelShape shape = study::resolve_model(scenario);
  shape.dtype = model.dtype;
  shape.quantization = model.quantization;
  shape.quantized_lm_head = model.quantized_lm_head;
  shape.plain = model.plain;
  const bool on_cpu = device == engine::DeviceKind::cpu;
  EngineOptions options =
      study::resolve_options(scenario, shape, on_cpu ? lower::DeviceKind::cpu : lower::DeviceKind::gpu);
  options.activations = parse_option("--activations", choices.activations, parse_activations);
  study::require_activations(options.activations, model);
  const bool all = options.kv_retention.policy == RetentionPolicy::all;
  const std::string id = place.phase + " kv_heads=" + std::to_string(shape.heads().num_key_value_heads) +
                         " block=" + std::to_string(place.block_size) + " kv=" + place.kv_cache_dtype +
                         (all ? "" : " retention=" + retention_text(options.kv_retention)) +
                         " context=" + std::to_string(place.context) + " batch=" + std::to_string(place.batch);
  return {id, shape, options, study::resolve_batch(scenario.workload, shape, options), choices.division};
}

}  // namespace

std::vector<engine::BenchPoint> make_grid(const GridChoices& choices, const ModelShape& model,
                                          engine::DeviceKind device) {
  std::vector<engine::BenchPoint> points;
  const std::vector<int> all_kv_heads = choices.kv_heads.empty() ? std::vector<int>{0} : choices.kv_heads;
  for (const std::string& phase : choices.phases)
    for (const int kv_heads : all_kv_heads)
      for (const int block_size : choices.block_sizes)
        for (const std::string& kv_cache_dtype : choices.kv_cache_dtypes)
          for (const std::string& retention : choices.retentions)
            for (const int context : choices.contexts)
              for (const int batch : choices.batches)
                points.push_back(make_point(
                    choices, model, {phase, kv_heads, block_size, kv_cache_dtype, retention, context, batch}, device));
  return points;
}

}  // namespace dculab::cli

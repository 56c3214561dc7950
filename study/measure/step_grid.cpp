#include "study/measure/step_grid.hpp"

#include "core/kv/table.hpp"
#include "engine/parallel/ranked_executor.hpp"
#include "study/measure/engine_weights.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

// "decode kv_heads=8 block=16 kv=f16 context=512 batch=1"
[[nodiscard]] std::string id_of(const GridStep& step, const ModelShape& shape, const EngineOptions& options) {
  const config::Workload& workload = step.scenario.workload;
  const bool all = options.kv_retention.policy == RetentionPolicy::all;
  return std::string(workload.phase == Phase::decode ? "decode" : "prefill") +
         " kv_heads=" + std::to_string(shape.heads().num_key_value_heads) +
         " block=" + std::to_string(options.block_size) + " kv=" + step.kv_cache_dtype +
         (all ? "" : " retention=" + retention_text(options.kv_retention)) +
         " context=" + std::to_string(workload.context_tokens) + " batch=" + std::to_string(workload.batch);
}

[[nodiscard]] engine::BenchPoint make_point(const StepGrid& grid, const GridStep& step, const ModelShape& loaded) {
  config::Scenario scenario = step.scenario;
  scenario.weights = loaded.layer_format();
  ModelShape shape = resolve_model(scenario);
  shape.dtype = loaded.dtype;
  shape.quantization = loaded.quantization;
  shape.quantized_lm_head = loaded.quantized_lm_head;
  shape.plain = loaded.plain;
  const bool on_cpu = grid.options.device.kind == engine::DeviceKind::cpu;
  EngineOptions options = resolve_options(scenario, shape, on_cpu ? lower::DeviceKind::cpu : lower::DeviceKind::gpu);
  options.activations = grid.activations;
  require_activations(options.activations, loaded);
  return {id_of(step, shape, options), shape, options, resolve_batch(scenario.workload, shape, options), grid.division};
}

}  // namespace

std::vector<engine::BenchPoint> grid_points(const StepGrid& grid, const ModelShape& loaded) {
  std::vector<engine::BenchPoint> points;
  for (const GridStep& step : grid.steps) points.push_back(make_point(grid, step, loaded));
  return points;
}

Trace measure_grid(const StepGrid& grid, const engine::BenchProgress& progress) {
  engine::require_shared_device(grid.options.device, grid.division);
  const engine::ModelWeights weights = load_or_make_weights(find_model(grid.model), grid.random_weights);
  return engine::measure_steps(weights, grid_points(grid, weights.shape), grid.options, progress);
}

}  // namespace dculab::study

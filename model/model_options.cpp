#include "model/model_options.hpp"

namespace dculab {

std::string problem(ActivationMode mode, const ModelShape& model) {
  const std::string stored = "those of " + model.name + " are " + std::string(name(model.layer_format().dtype));
  if (!takes_activations(model.layer_format(), mode))
    return mode == ActivationMode::int8 ? "needs quantized weights, and " + stored + "; quantize the model first"
                                        : "needs BF16 weights, and " + stored + "; use exact";
  if (mode == ActivationMode::bf16 && (model.hidden_size % 2 != 0 || model.intermediate_size % 2 != 0))
    return "needs an even hidden_size and intermediate_size, which " + model.name + " has not; use exact";
  return {};
}

std::vector<std::string> problems(const EngineOptions& options, const ModelShape& model) {
  std::vector<std::string> found;
  const RetentionPolicy policy = options.kv_retention.policy;
  const std::string kept = "kv_retention " + std::string(name(policy));
  if (policy == RetentionPolicy::heavy_hitters && model.position == PositionKind::alibi)
    found.push_back(kept + " cannot serve " + model.name + ": ALiBi needs the keys in the order of their positions");
  const bool by_place = policy == RetentionPolicy::sinks || policy == RetentionPolicy::heavy_hitters;
  if (by_place && model.sliding_window > 0)
    found.push_back(kept + " cannot serve " + model.name + ": its sliding window of " +
                    std::to_string(model.sliding_window) + " tokens would hide what is kept; use window");
  return found;
}

}  // namespace dculab

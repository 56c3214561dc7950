// Why a model cannot be served with the options asked for.
#include <algorithm>
#include <string>
#include <utility>

#include "core/activation_mode.hpp"
#include "core/kivi.hpp"
#include "model/plan_step.hpp"

namespace dculab {
namespace {

// What a model caches that has not K and V in every layer.
[[nodiscard]] std::string cached_instead(const ModelShape& model) {
  if (model.has_compressed_entries()) return "this model caches compressed entries";
  if (model.has_latents()) return "this model caches latents";
  if (model.has_delta_nets()) return "some layers of this model have a recurrent state";
  return "some layers of this model read those of an earlier one";
}

void add_load_problems(std::vector<std::string>& found, const ExpertLoad& load, const ModelShape& model) {
  if (load != ExpertLoad() && !model.has_experts()) found.push_back("experts: " + model.name + " has none to load");
  const auto used = std::ranges::count_if(load.histogram, [](double count) { return count > 0; });
  for (const LayerKind& kind : model.kinds) {
    if (!kind.experts) continue;
    auto of_kind = problems(load, kind.experts->num_experts);
    if (of_kind.empty() && !load.histogram.empty() && used < kind.experts->num_experts_per_tok)
      of_kind.push_back("the histogram of experts has counts for " + std::to_string(used) +
                        " of them, and each token goes to " + std::to_string(kind.experts->num_experts_per_tok));
    for (std::string& problem : of_kind)
      if (std::ranges::find(found, problem) == found.end()) found.push_back(std::move(problem));
  }
}

}  // namespace

std::string problem(ActivationMode mode, const ModelShape& model) {
  const std::string stored = "those of " + model.name + " are " + std::string(name(model.layer_format().dtype));
  if (!takes_activations(model.layer_format(), mode))
    return mode == ActivationMode::int8  ? "needs quantized weights, and " + stored + "; quantize the model first"
           : mode == ActivationMode::fp8 ? "needs FP8 weights, and " + stored + "; use exact"
                                         : "needs BF16 weights, and " + stored + "; use exact";
  const auto is_odd = [](const LayerKind& kind) {
    return kind.mlp.intermediate_size % 2 != 0 || (kind.experts && kind.experts->intermediate_size % 2 != 0);
  };
  if (mode == ActivationMode::bf16 && (model.hidden_size % 2 != 0 || std::ranges::any_of(model.kinds, is_odd)))
    return "needs an even hidden_size and intermediate_size, which " + model.name + " has not; use exact";
  return {};
}

std::vector<std::string> problems(const EngineOptions& options, const ModelShape& model) {
  std::vector<std::string> found;
  const RetentionPolicy policy = options.kv_retention.policy;
  const std::string kept = "kv_retention " + std::string(name(policy));
  if (policy == RetentionPolicy::heavy_hitters && model.has_alibi())
    found.push_back(kept + " cannot serve " + model.name + ": ALiBi needs the keys in the order of their positions");
  const auto has_soft_cap = [](const LayerKind& kind) { return kind.has_kv_heads() && kind.gqa().logit_soft_cap > 0; };
  if (policy == RetentionPolicy::heavy_hitters && std::ranges::any_of(model.kinds, has_soft_cap))
    found.push_back(kept + " cannot serve " + model.name +
                    ": its attention has a soft cap, which sums of scores leave out");
  const bool is_grouped = std::ranges::all_of(
      model.kinds, [](const LayerKind& kind) { return kind.has_kv_heads() && !kind.gqa().shares_kv; });
  if (policy != RetentionPolicy::all && !is_grouped)
    found.push_back(kept + " cannot serve " + model.name + ": it needs K and V in every layer, and " +
                    cached_instead(model));
  if (policy != RetentionPolicy::all && is_grouped && model.has_unequal_heads())
    found.push_back(kept + " cannot serve " + model.name + ": it needs equal heads and groups in all layers");
  if (is_kivi(options.kv_cache_dtype) && is_grouped && model.has_unequal_heads())
    found.push_back("a KV cache of " + std::string(name(options.kv_cache_dtype)) + " cannot serve " + model.name +
                    ": it needs equal heads and groups in all layers");
  if (is_kivi(options.kv_cache_dtype) && !is_grouped)
    found.push_back("a KV cache of " + std::string(name(options.kv_cache_dtype)) + " cannot serve " + model.name +
                    ": it needs K and V in every layer, and " + cached_instead(model));
  if (options.enable_prefix_caching && model.has_compressed_entries())
    found.push_back("enable_prefix_caching cannot serve " + model.name +
                    ": its windows of tokens and open entries are of whole sequences, not of blocks");
  if (options.enable_prefix_caching && model.has_delta_nets())
    found.push_back("enable_prefix_caching cannot serve " + model.name +
                    ": the states of its gated delta nets are of whole sequences, not of blocks");
  if (options.speculative_config.enabled() && (model.has_compressed_entries() || model.has_delta_nets()))
    found.push_back("speculative_config cannot serve " + model.name +
                    ": a rejected token could not be taken back out of its " +
                    (model.has_delta_nets() ? "recurrent states" : "compressed entries"));
  const bool by_place = policy == RetentionPolicy::sinks || policy == RetentionPolicy::heavy_hitters;
  const auto windowed = std::ranges::find_if(
      model.kinds, [](const LayerKind& kind) { return kind.has_kv_heads() && kind.gqa().sliding_window > 0; });
  if (by_place && windowed != model.kinds.end())
    found.push_back(kept + " cannot serve " + model.name + ": its sliding window of " +
                    std::to_string(windowed->gqa().sliding_window) + " tokens would hide what is kept; use window");
  add_load_problems(found, options.expert_load, model);
  return found;
}

}  // namespace dculab

// Why a model cannot be served with the options asked for.
#include <algorithm>
#include <string>
#include <utility>

#include "core/activation_mode.hpp"
#include "core/kv/table.hpp"
#include "model/plan_step.hpp"

namespace dculab {
namespace {

// What a model caches that does not have K and V in every layer.
[[nodiscard]] std::string cached_instead(const ModelShape& model) {
  if (model.has_compressed_entries()) return "this model caches compressed entries";
  if (model.has_latents()) return "this model caches latents";
  if (model.has_delta_nets()) return "some layers of this model have a recurrent state";
  return "some layers of this model read those of an earlier one";
}

[[nodiscard]] bool any_gqa(const ModelShape& model, bool (*holds)(const Gqa&)) {
  return std::ranges::any_of(model.kinds,
                             [&](const LayerKind& kind) { return kind.has_kv_heads() && holds(kind.gqa()); });
}

// Of the first layers that have one; 0: none has.
[[nodiscard]] int sliding_window(const ModelShape& model) {
  for (const LayerKind& kind : model.kinds)
    if (kind.has_kv_heads() && kind.gqa().sliding_window > 0) return kind.gqa().sliding_window;
  return 0;
}

[[nodiscard]] bool has(const ModelShape& model, KvFeature feature) {
  const auto is_grouped = [](const LayerKind& kind) { return kind.has_kv_heads() && !kind.gqa().shares_kv; };
  switch (feature) {
    case KvFeature::alibi:
      return model.has_alibi();
    case KvFeature::soft_cap:
      return any_gqa(model, [](const Gqa& attention) { return attention.logit_soft_cap > 0; });
    case KvFeature::missing_kv:
      return !std::ranges::all_of(model.kinds, is_grouped);
    case KvFeature::unequal_heads:
      return model.has_unequal_heads() && std::ranges::all_of(model.kinds, is_grouped);
    case KvFeature::sliding_window:
      return sliding_window(model) > 0;
    default:
      return false;
  }
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

void add_sharing_problems(std::vector<std::string>& found, const std::string& option, const ModelShape& model) {
  if (model.has_compressed_entries())
    found.push_back(option + " cannot serve " + model.name +
                    ": its windows of tokens and open entries are of whole sequences, not of blocks");
  if (model.has_delta_nets())
    found.push_back(option + " cannot serve " + model.name +
                    ": the states of its gated delta nets are of whole sequences, not of blocks");
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

std::vector<std::string> kv_problems(const KvChoice& choice, const ModelShape& model) {
  std::vector<std::string> found;
  for (const KvClash& clash : kv_clashes()) {
    if (!clash.holds(choice) || !has(model, clash.feature)) continue;
    std::string text = clash.text_for(choice);
    fill(text, "{model}", model.name);
    fill(text, "{cached}", cached_instead(model));
    fill(text, "{window}", std::to_string(sliding_window(model)));
    found.push_back(std::move(text));
  }
  return found;
}

std::vector<std::string> problems(const EngineOptions& options, const ModelShape& model) {
  std::vector<std::string> found = kv_problems(options.kv(), model);
  if (options.enable_prefix_caching) add_sharing_problems(found, "enable_prefix_caching", model);
  if (options.kv_skip.duplicate_prompts) add_sharing_problems(found, "kv_cache_skip duplicate_prompts", model);
  if (options.speculative_config.enabled() && (model.has_compressed_entries() || model.has_delta_nets()))
    found.push_back("speculative_config cannot serve " + model.name +
                    ": a rejected token could not be taken back out of its " +
                    (model.has_delta_nets() ? "recurrent states" : "compressed entries"));
  add_load_problems(found, options.expert_load, model);
  return found;
}

}  // namespace dculab

#include "study/scenario/served.hpp"

#include <algorithm>
#include <set>

#include "config/weight_format_text.hpp"
#include "core/activation_mode.hpp"
#include "core/error.hpp"
#include "core/groups_by_load.hpp"
#include "core/kv/table.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/latent_tiling.hpp"
#include "model/plan_step.hpp"
#include "sim/speculation/draft_work.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::vector<Op> ops_of(const ModelShape& model, const EngineOptions& options, const Batch& batch,
                                     OpKind kind) {
  std::vector<Op> ops = plan_step(model, options, batch).ops;
  std::erase_if(ops, [kind](const Op& op) { return op.kind != kind; });
  return ops;
}

// The attention ops of one sequence, in all kinds of layers that have any; of a decode also when it verifies drafts.
[[nodiscard]] std::vector<Op> attention_of(const ModelShape& model, const EngineOptions& options, Phase phase) {
  const OpKind kind = phase == Phase::decode ? OpKind::attention_decode : OpKind::attention_prefill;
  const Batch batch = uniform_batch(phase, 1, 2);
  std::vector<Op> ops = ops_of(model, options, batch, kind);
  if (phase == Phase::prefill || !options.speculative_config.enabled()) return ops;
  const Batch verifying = sim::with_drafts(batch, options.speculative_config.shape);
  for (Op& op : ops_of(model, options, verifying, kind)) ops.push_back(op);
  return ops;
}

// The products of a step, with enough rows that no kernel for a few of them takes the layers'; none of those that a
// kernel of experts serves.
[[nodiscard]] std::vector<Op> products_of(const sim::Machine& machine, const ModelShape& model,
                                          const EngineOptions& options) {
  constexpr int kManyRows = 64;
  std::vector<Op> ops = ops_of(model, options, uniform_batch(Phase::prefill, 1, kManyRows), OpKind::matmul);
  std::erase_if(ops, [&](const Op& op) {
    return op.groups.count > 0 && lower::expert_kernel_of(machine.stack.kernels, op, kManyRows, machine) != nullptr;
  });
  return ops;
}

template <class Kernel>
[[nodiscard]] std::string why_none(const std::vector<const Kernel*>& kernels, const Op& op,
                                   const sim::Machine& machine) {
  std::string text;
  for (const Kernel* kernel : kernels) {
    const std::string reason = why_not(*kernel, op, machine);
    if (reason.empty()) return {};
    text += (text.empty() ? "" : "; ") + std::string(kernel->name) + " " + reason;
  }
  return text;
}

template <class T, class Text>
void require_one_of(const std::vector<T>& allowed, const T& value, const std::string& what, const sim::Stack& stack,
                    Text text, const std::string& remedy = {}) {
  if (allowed.empty() || std::ranges::find(allowed, value) != allowed.end()) return;
  std::string words;
  for (const T& each : allowed) words += (words.empty() ? "" : ", ") + text(each);
  throw InputError("stack " + stack.name, what + " " + text(value) + " is not served; it takes " + words + remedy);
}

[[nodiscard]] std::string weights_text(const Op& op, const EngineOptions& options) {
  const Dtype dtype = op.weight_format.dtype;
  return "weights of " +
         (dtype == options.weights.dtype ? config::weight_format_text(options.weights) : std::string(name(dtype))) +
         (op.activations == ActivationMode::exact ? "" : " with activations of " + std::string(name(op.activations)));
}

constexpr const char* kOtherWeights = "; --weights (weights in a scenario) predicts the model with others";

void require_products(const sim::Machine& machine, const ModelShape& model, const EngineOptions& options) {
  const sim::Stack& stack = machine.stack;
  require_one_of(
      stack.limits.weight_dtypes, options.weights.dtype, "weights", stack,
      [](Dtype dtype) { return std::string(name(dtype)); }, kOtherWeights);
  for (const Op& op : products_of(machine, model, options))
    if (const std::string why = why_none(stack.kernels.matmul, op, machine); !why.empty())
      throw InputError("stack " + stack.name, "no kernel serves " + std::string(op.name) + " of " + model.name +
                                                  " with " + weights_text(op, options) + ": " + why + kOtherWeights);
}

void require_attention(const sim::Machine& machine, const ModelShape& model, const EngineOptions& options,
                       const std::vector<Phase>& phases) {
  const sim::Stack& stack = machine.stack;
  if (model.has_alibi() && !stack.limits.alibi)
    throw InputError("stack " + stack.name, "ALiBi, which " + model.name + " has, is not served");
  for (const Phase phase : phases) {
    const auto& kernels = phase == Phase::prefill ? stack.kernels.attention_prefill : stack.kernels.attention_decode;
    for (const Op& op : attention_of(model, options, phase)) {
      const std::string why = why_none(kernels, op, machine);
      if (why.empty() || serves(lower::attention_kernel_of(stack.kernels, op, machine), op, machine)) continue;
      const bool drafts = lower::has_several_new_tokens(op);
      throw InputError("stack " + stack.name,
                       "no kernel serves " + std::string(phase == Phase::prefill ? "prefill" : "decode") +
                           " attention " + (drafts ? "that verifies drafts " : "") + "of " + model.name +
                           " with block_size " + std::to_string(options.block_size) + " and kv_cache_dtype " +
                           std::string(name(options.kv_cache_dtype)) + ": " + why);
    }
  }
}

// Of our own kernels: why none takes the weights, if so.
[[nodiscard]] std::vector<std::string> unserved_products(const sim::Machine& machine, const ModelShape& model,
                                                         const EngineOptions& options) {
  const std::string where = machine.kind == lower::DeviceKind::cpu ? "" : " on a GPU";
  for (const Op& op : products_of(machine, model, options)) {
    const lower::MatmulKernel& kernel = lower::matmul_kernel_of(machine.stack.kernels, op, machine);
    const std::string why = why_not(kernel, op, machine);
    if (!why.empty())
      return {"no kernel of dculab multiplies " + weights_text(op, options) + where + ": predicted as if one did; " +
              std::string(kernel.name) + " " + why};
  }
  return {};
}

// Of our own kernels; a model without latents has none that are not served.
[[nodiscard]] bool serves_latents(const ModelShape& model, const EngineOptions& options) {
  namespace gpu = lower::dculab_gpu;
  return std::ranges::all_of(model.kinds, [&](const LayerKind& kind) {
    const Mla* const latents = kind.mla();
    return latents == nullptr ||
           gpu::serves_latents({.kv_lora_rank = latents->kv_lora_rank,
                                .q_lora_rank = latents->q_lora_rank,
                                .qk_nope_head_dim = latents->qk_nope_head_dim,
                                .qk_rope_head_dim = latents->qk_rope_head_dim,
                                .v_head_dim = latents->v_head_dim},
                               model.slot_format(WeightSlot::kv_b_proj, kind, options.weights).dtype,
                               options.kv_cache_dtype);
  });
}

[[nodiscard]] bool runs_own(const sim::Machine& machine) {
  return machine.stack.is_own() || machine.kind == lower::DeviceKind::cpu;
}

// Of the first layers whose heads the format does not store.
[[nodiscard]] std::string head_dim_problem(const ModelShape& model, Dtype dtype) {
  std::string found;
  for (const LayerKind& kind : model.kinds)
    if (found.empty() && kind.has_kv_heads()) found = dculab::head_dim_problem(dtype, kind.gqa().heads.head_dim);
  return found;
}

[[nodiscard]] std::vector<std::string> unserved_by_own(const sim::Machine& machine, const ModelShape& model,
                                                       const EngineOptions& options) {
  std::vector<std::string> found = unserved_products(machine, model, options);
  if (model.tensor_names == nullptr)
    found.push_back("the engine of dculab does not run " + model.name + ": predicted as if it did");
  for (std::string& refused : refused_kv(machine, model, options)) found.push_back(std::move(refused));
  if (machine.kind == lower::DeviceKind::cpu) return found;
  const std::string priced = " on a GPU: predicted as if one did";
  const auto odd = std::ranges::find_if(model.kinds, [](const LayerKind& kind) {
    return kind.has_kv_heads() && !lower::dculab_gpu::is_supported_head_dim(kind.gqa().heads.head_dim);
  });
  if (odd != model.kinds.end())
    found.push_back("no kernel of dculab attends with a head_dim of " + std::to_string(odd->gqa().heads.head_dim) +
                    priced);
  if (model.has_compressed_entries())
    found.push_back("no kernel of dculab attends over compressed entries" + priced);
  else if (!serves_latents(model, options))
    found.push_back("no kernel of dculab attends over latents of such sizes, weights or cache" + priced);
  return found;
}

[[nodiscard]] std::vector<std::string> unknown_of_others(const sim::Machine& machine, const ModelShape& model,
                                                         const EngineOptions& options) {
  std::vector<std::string> found;
  if (!model.has_alibi()) return found;
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    const Op op = attention_of(model, options, phase).front();
    const lower::AttentionKernel& kernel = lower::attention_kernel_of(machine.stack.kernels, op, machine);
    if (kernel.limits.alibi != lower::Alibi::unknown) continue;
    std::string text = "whether " + std::string(kernel.name) + " takes ALiBi's slopes, which " + model.name +
                       " needs, is not known: predicted as if it did";
    if (std::ranges::find(found, text) == found.end()) found.push_back(std::move(text));
  }
  return found;
}

}  // namespace

void require_sequences(const sim::Stack& stack, int sequences) {
  const int most = stack.limits.max_num_seqs;
  if (most > 0 && sequences > most)
    throw InputError("stack " + stack.name, "runs at most " + std::to_string(most) + " sequences at a time, and " +
                                                std::to_string(sequences) + " are asked for");
}

void require_served(const sim::Machine& machine, const ModelShape& model, const EngineOptions& options,
                    const std::vector<Phase>& phases) {
  const sim::Stack& stack = machine.stack;
  if (stack.is_own() || machine.kind == lower::DeviceKind::cpu) return;
  require_one_of(stack.limits.block_sizes, options.block_size, "block_size", stack,
                 [](int size) { return std::to_string(size); });
  require_one_of(stack.limits.kv_cache_dtypes, options.kv_cache_dtype, "kv_cache_dtype", stack,
                 [](Dtype dtype) { return std::string(name(dtype)); });
  if (const RetentionPolicy policy = options.kv_retention.policy; differs_in_decodes(policy))
    throw InputError("stack " + stack.name, "kv_cache.retention " + std::string(name(policy)) +
                                                " is not served: its kernels " +
                                                (drops_tokens(policy) ? "keep" : "load") + " every token");
  require_products(machine, model, options);
  require_attention(machine, model, options, phases);
}

void refuse_idle_parameters(std::span<const Node> stack_figures, const sim::Machine& machine, const ModelShape& model,
                            const EngineOptions& options, const std::vector<Phase>& phases) {
  if (machine.stack.is_own() || machine.kind == lower::DeviceKind::cpu) return;
  std::set<std::string_view> serving;
  for (const Phase phase : phases)
    for (const Op& op : attention_of(model, options, phase))
      serving.insert(lower::attention_kernel_of(machine.stack.kernels, op, machine).name);
  for (const Node& figure : stack_figures) {
    constexpr std::string_view kParameters = "parameters.";
    if (!figure.key.starts_with(kParameters)) continue;
    const std::string kernel = figure.key.substr(kParameters.size(), figure.key.rfind('.') - kParameters.size());
    if (serving.contains(kernel)) continue;
    std::string names;
    for (const std::string_view name : serving) names.append(names.empty() ? "" : " and ").append(name);
    throw InputError("stack " + machine.stack.name,
                     figure.key + ": " + kernel + " runs nothing here; attention of " + model.name + " is by " + names);
  }
}

std::vector<std::string> refused_kv(const sim::Machine& machine, const ModelShape& model,
                                    const EngineOptions& options) {
  if (!runs_own(machine)) return {};
  const bool on_gpu = machine.kind != lower::DeviceKind::cpu, is_divided = model.tensor_parallel_size > 1;
  std::vector<std::string> found;
  const auto refuse = [&found](const std::string& reason) {
    found.push_back("predicted although the engine of dculab refuses it: " + reason);
  };
  const auto refuse_all = [&](KvFeature feature) {
    for (const std::string& reason : clashes(options.kv(), feature)) refuse(reason);
  };
  if (is_divided) refuse_all(KvFeature::divided);
  if (on_gpu) refuse_all(KvFeature::gpu);
  if (const std::string reason = head_dim_problem(model, options.kv_cache_dtype); !reason.empty()) refuse(reason);
  if (options.groups_by_load && (on_gpu || is_divided)) refuse(kHeadSetsOnCpu);
  if (on_gpu && model.has_unequal_heads())
    found.emplace_back(
        "no kernel of dculab takes different heads, or groups of different sizes, in a KV cache on a GPU: predicted as "
        "if one did");
  return found;
}

std::vector<std::string> unserved(const sim::Machine& machine, const ModelShape& model, const EngineOptions& options) {
  std::vector<std::string> found =
      runs_own(machine) ? unserved_by_own(machine, model, options) : unknown_of_others(machine, model, options);
  const auto is_shared = [](const LayerKind& kind) { return kind.experts && kind.experts->part; };
  if (std::ranges::any_of(model.kinds, is_shared) && !lower::is_hopper(machine))
    found.push_back("tokens are sent to experts and back by DeepEP's kernels, which do not run on " + machine.name +
                    ": predicted as if they did");
  const auto has_soft_cap = [](const LayerKind& kind) { return kind.has_kv_heads() && kind.gqa().logit_soft_cap > 0; };
  if (std::ranges::any_of(model.kinds, has_soft_cap))
    found.emplace_back(
        "the soft cap of attention scores is not modelled: compute-bound attention takes longer than this");
  return found;
}

}  // namespace dculab::study

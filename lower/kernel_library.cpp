#include "lower/kernel_library.hpp"

#include <algorithm>

#include "core/activation_mode.hpp"
#include "lower/dculab_cpu/kernels.hpp"
#include "lower/dculab_gpu/kernels.hpp"
#include "lower/deep_ep/kernels.hpp"
#include "lower/nccl/kernels.hpp"
#include "lower/shared_memory/kernels.hpp"

namespace dculab::lower {
namespace {

template <class T>
[[nodiscard]] bool is_one_of(std::span<const T> list, T value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

// Expanded keys and values lie one after the other, whatever the block size.
[[nodiscard]] bool serves_block(const AttentionLimits& limits, const AttentionWork& work) {
  const int size = work.block_size;
  return !work.is_paged || (size % limits.block_multiple == 0 && is_one_of(limits.block_sizes, size));
}

[[nodiscard]] bool has_entries(const AttentionWork& work) { return work.is_latent && work.value_dim == work.head_dim; }

[[nodiscard]] bool serves_latents(const AttentionLimits& limits, const AttentionWork& work) {
  const Latents needed = has_entries(work) ? Latents::entries : work.is_latent ? Latents::only : Latents::no;
  return limits.latents == needed || (limits.latents == Latents::takes && needed != Latents::entries);
}

[[nodiscard]] bool serves_head(const AttentionLimits& limits, int head_dim) {
  return head_dim % limits.head_dim_multiple == 0 && is_one_of(limits.head_dims, head_dim) &&
         (limits.most_head_dim == 0 || head_dim <= limits.most_head_dim);
}

[[nodiscard]] bool serves_group(const AttentionLimits& limits, int group) {
  return limits.most_group == 0 || group <= limits.most_group;
}

// Every sequence of a decode has a new token at least.
[[nodiscard]] bool serves_new_tokens(const AttentionLimits& limits, const Op& op) {
  if (op.kind != OpKind::attention_decode || limits.most_new_tokens == 0) return true;
  return op.attention.query_tokens <= static_cast<double>(limits.most_new_tokens) * op.attention.num_sequences;
}

[[nodiscard]] bool serves_slopes(const AttentionLimits& limits, const AttentionWork& work) {
  return !work.has_alibi || limits.alibi != Alibi::no;
}

[[nodiscard]] bool has(const ProductFormat& format, const Device& device) {
  return format.on == nullptr || format.on(device);
}

[[nodiscard]] const ProductFormat* format_of(std::span<const ProductFormat> formats, const Op& op,
                                             const Device& device) {
  const auto found = std::ranges::find_if(formats, [&](const ProductFormat& format) {
    return format.weights == op.weight_format.dtype && format.activations == op.activations &&
           (!format.has_row_scales || op.weight_format.group_size == op.k) && has(format, device);
  });
  return found == formats.end() ? nullptr : &*found;
}

[[nodiscard]] bool serves_rows(const ProductFormat& format, const Op& op) {
  return format.most_rows == 0 || op.m <= format.most_rows;
}

// "f16, bf16, int8 (one scale a row) with activations of int8"
[[nodiscard]] std::string text_of(std::span<const ProductFormat> formats, const Device* device) {
  std::string text;
  for (const ProductFormat& format : formats) {
    if (device != nullptr && !has(format, *device)) continue;
    text += (text.empty() ? "" : ", ") + std::string(name(format.weights));
    if (format.has_row_scales) text += " (one scale a row)";
    if (format.activations != ActivationMode::exact)
      text += " with activations of " + std::string(name(format.activations));
    if (device == nullptr && format.on != nullptr) text += " on some devices";
  }
  return text;
}

[[nodiscard]] std::string text_of(std::span<const int> sizes) {
  std::string text;
  for (const int size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return text;
}

template <class Kernel>
[[nodiscard]] const Kernel& first_that_serves(const std::vector<const Kernel*>& list, const Op& op,
                                              const Device& device) {
  for (const Kernel* kernel : list)
    if (serves(*kernel, op, device)) return *kernel;
  return *list.back();
}

}  // namespace

bool serves(const MatmulKernel& kernel, const Op& op, const Device& device) {
  if (kernel.formats.empty() || !kernel.runs_on(device)) return kernel.runs_on(device);
  const ProductFormat* format = format_of(kernel.formats, op, device);
  return format != nullptr && serves_rows(*format, op);
}

bool serves(const AttentionKernel& kernel, const Op& op, const Device& device) {
  const AttentionWork& work = op.attention;
  return kernel.runs_on(device) && serves_latents(kernel.limits, work) && serves_block(kernel.limits, work) &&
         serves_head(kernel.limits, work.head_dim) && serves_group(kernel.limits, group_size(work)) &&
         serves_new_tokens(kernel.limits, op) && is_one_of(kernel.limits.kv_dtypes, work.kv_dtype) &&
         serves_slopes(kernel.limits, work);
}

bool serves(const CollectiveKernel& kernel, const Op& op, const Device& device) { return kernel.serves(op, device); }

// The router has no weights of experts: who would do their products sorts for them.
bool serves(const ExpertKernel& kernel, const Op& op, std::int64_t tokens, const Device& device) {
  const bool is_product = op.weight == WeightSlot::expert_up_proj || op.weight == WeightSlot::expert_down_proj;
  if (!kernel.runs_on(device) || !(is_product || op.kind == OpKind::route_tokens)) return false;
  if (is_product && tokens <= kernel.most_vector_tokens) return false;
  return !is_product || kernel.formats.empty() || format_of(kernel.formats, op, device) != nullptr;
}

ActivationMode activations_of(const Kernels& kernels, WeightFormat weights, ActivationMode asked, bool has_experts,
                              const Device& device) {
  const auto takes = [&](const auto* kernel) {
    const auto is_it = [&](const ProductFormat& format) {
      return format.weights == weights.dtype && format.activations == asked && format.most_rows == 0 &&
             has(format, device);
    };
    return kernel->runs_on(device) && std::ranges::any_of(kernel->formats, is_it);
  };
  const bool experts_take = !has_experts || kernels.experts.empty() || std::ranges::any_of(kernels.experts, takes);
  return experts_take && std::ranges::any_of(kernels.matmul, takes) ? asked : ActivationMode::exact;
}

std::string what_it_takes(const MatmulKernel& kernel) { return "takes weights of " + text_of(kernel.formats, nullptr); }

std::string what_it_takes(const ExpertKernel& kernel) {
  return kernel.formats.empty() ? "takes weights of any format"
                                : "takes weights of " + text_of(kernel.formats, nullptr);
}

std::string what_it_takes(const AttentionKernel& kernel) {
  switch (kernel.limits.alibi) {
    case Alibi::takes:
      return "takes ALiBi";
    case Alibi::no:
      return "takes no ALiBi";
    case Alibi::unknown:
      break;
  }
  return "ALiBi: not known";
}

std::string why_not(const MatmulKernel& kernel, const Op& op, const Device& device) {
  if (!kernel.runs_on(device)) return "is not for this device";
  if (kernel.formats.empty()) return {};
  const ProductFormat* format = format_of(kernel.formats, op, device);
  if (format == nullptr) return "takes weights of " + text_of(kernel.formats, &device);
  return serves_rows(*format, op) ? "" : "takes at most " + std::to_string(format->most_rows) + " rows";
}

std::string why_not(const AttentionKernel& kernel, const Op& op, const Device& device) {
  const AttentionWork& work = op.attention;
  const AttentionLimits& limits = kernel.limits;
  if (!kernel.runs_on(device)) return "is not for this device";
  if (!serves_latents(limits, work))
    return limits.latents == Latents::entries ? "takes compressed entries alone"
           : has_entries(work)                ? "takes no compressed entries"
           : limits.latents == Latents::only  ? "takes latents alone"
                                              : "takes no latents, whose values are part of their keys";
  if (!serves_block(limits, work))
    return "takes block sizes of " + (limits.block_sizes.empty()
                                          ? "multiples of " + std::to_string(limits.block_multiple)
                                          : text_of(limits.block_sizes));
  if (!serves_head(limits, work.head_dim))
    return "takes head sizes of " +
           (!limits.head_dims.empty()
                ? text_of(limits.head_dims)
                : "multiples of " + std::to_string(limits.head_dim_multiple) +
                      (limits.most_head_dim == 0 ? "" : " up to " + std::to_string(limits.most_head_dim)));
  if (!serves_group(limits, group_size(work)))
    return "takes at most " + std::to_string(limits.most_group) + " query heads a KV head";
  if (!serves_slopes(limits, work)) return "takes no ALiBi slopes";
  if (!serves_new_tokens(limits, op))
    return limits.most_new_tokens == 1
               ? std::string("takes one new token of a sequence")
               : "takes at most " + std::to_string(limits.most_new_tokens) + " new tokens of a sequence";
  if (is_one_of(limits.kv_dtypes, work.kv_dtype)) return {};
  std::string formats;
  for (const Dtype dtype : limits.kv_dtypes) formats += (formats.empty() ? "" : ", ") + std::string(name(dtype));
  return "takes KV caches of " + formats;
}

const MatmulKernel& matmul_kernel_of(const Kernels& kernels, const Op& op, const Device& device) {
  if (device.kind == DeviceKind::cpu) return dculab_cpu::kMatmul;
  return kernels.matmul.empty() ? dculab_gpu::kMatmul : first_that_serves(kernels.matmul, op, device);
}

const AttentionKernel& attention_kernel_of(const Kernels& kernels, const Op& op, const Device& device) {
  if (device.kind == DeviceKind::cpu) return dculab_cpu::kAttention;
  const auto& list = op.kind == OpKind::attention_decode ? kernels.attention_decode : kernels.attention_prefill;
  if (list.empty() || op.kind == OpKind::attention_scores) return dculab_gpu::kAttention;
  const auto serves_op = [&](const AttentionKernel* kernel) { return serves(*kernel, op, device); };
  if (has_several_new_tokens(op) && std::ranges::none_of(list, serves_op))
    for (const AttentionKernel* kernel : kernels.attention_prefill)
      if (serves_op(kernel)) return *kernel;
  return first_that_serves(list, op, device);
}

bool has_several_new_tokens(const Op& op) {
  return op.kind == OpKind::attention_decode && op.attention.query_tokens > op.attention.num_sequences;
}

const CollectiveKernel& collective_kernel_of(const Kernels& kernels, const Op& op, const Device& device) {
  for (const CollectiveKernel* kernel : kernels.all_reduce)
    if (serves(*kernel, op, device)) return *kernel;
  if (device.kind == DeviceKind::cpu) return shared_memory::kSharedMemory;
  return is_nvidia(device) ? nccl::kNccl : nccl::kRccl;
}

const ExpertKernel* expert_kernel_of(const Kernels& kernels, const Op& op, std::int64_t tokens, const Device& device) {
  if (device.kind == DeviceKind::cpu) return nullptr;
  const auto found = std::ranges::find_if(kernels.experts,
                                          [&](const ExpertKernel* each) { return serves(*each, op, tokens, device); });
  return found == kernels.experts.end() ? nullptr : *found;
}

const ExchangeKernel& exchange_kernel_of(const Op& op, const Device& device) {
  if (device.kind == DeviceKind::cpu) return shared_memory::kTokens;
  return deep_ep::kLowLatency.serves(op, device) ? deep_ep::kLowLatency : deep_ep::kHighThroughput;
}

ChosenKernel kernel_for(const Kernels& kernels, const Op& op, const Device& device) {
  switch (op.kind) {
    case OpKind::matmul:
      return {.matmul = &matmul_kernel_of(kernels, op, device)};
    case OpKind::attention_prefill:
    case OpKind::attention_decode:
    case OpKind::attention_scores:
      return {.attention = &attention_kernel_of(kernels, op, device)};
    case OpKind::all_reduce:
    case OpKind::all_gather:
      return {.collective = &collective_kernel_of(kernels, op, device)};
    case OpKind::dispatch_tokens:
    case OpKind::return_tokens:
      return {.exchange = &exchange_kernel_of(op, device)};
    case OpKind::embedding:
    case OpKind::rms_norm:
    case OpKind::layer_norm:
    case OpKind::qk_norm:
    case OpKind::rope_and_cache:
    case OpKind::shift_sink_keys:
    case OpKind::update_block_bounds:
    case OpKind::choose_critical_blocks:
    case OpKind::activation_mul:
    case OpKind::route_tokens:
    case OpKind::combine_experts:
    case OpKind::output_gate:
    case OpKind::causal_conv:
    case OpKind::delta_rule:
    case OpKind::gated_norm:
    case OpKind::compress_kv:
    case OpKind::index_scores:
    case OpKind::choose_entries:
    case OpKind::mix_streams:
    case OpKind::residual_add:
    case OpKind::soft_cap:
      break;
  }
  return {};
}

bool are_ours(const Kernels& kernels) {
  return std::ranges::all_of(kernels.matmul, [](const MatmulKernel* each) { return each == &dculab_gpu::kMatmul; });
}

Bytes result_of(const Op& collective) {
  for (const Operand& operand : collective.operands())
    if (operand.role == OperandRole::output) return operand.unique;
  return {};
}

bool are_directly_linked(const Op& collective, const Device& device) {
  return collective.devices - 1 <= std::min(device.peers.value_or(collective.devices), device.direct_peers.value_or(0));
}

bool runs_anywhere(const Device& /*device*/) { return true; }
bool runs_on_gpus(const Device& device) { return device.kind == DeviceKind::gpu; }

}  // namespace dculab::lower

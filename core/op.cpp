#include "core/op.hpp"

namespace dculab {

std::string_view name(OpKind kind) {
  switch (kind) {
    case OpKind::embedding:
      return "embedding";
    case OpKind::rms_norm:
      return "rms_norm";
    case OpKind::layer_norm:
      return "layer_norm";
    case OpKind::matmul:
      return "matmul";
    case OpKind::shift_sink_keys:
      return "shift_sink_keys";
    case OpKind::qk_norm:
      return "qk_norm";
    case OpKind::rope_and_cache:
      return "rope_and_cache";
    case OpKind::attention_prefill:
      return "attention_prefill";
    case OpKind::attention_decode:
      return "attention_decode";
    case OpKind::attention_scores:
      return "attention_scores";
    case OpKind::update_block_bounds:
      return "update_block_bounds";
    case OpKind::choose_critical_blocks:
      return "choose_critical_blocks";
    case OpKind::activation_mul:
      return "activation_mul";
    case OpKind::route_tokens:
      return "route_tokens";
    case OpKind::combine_experts:
      return "combine_experts";
    case OpKind::output_gate:
      return "output_gate";
    case OpKind::causal_conv:
      return "causal_conv";
    case OpKind::delta_rule:
      return "delta_rule";
    case OpKind::gated_norm:
      return "gated_norm";
    case OpKind::compress_kv:
      return "compress_kv";
    case OpKind::index_scores:
      return "index_scores";
    case OpKind::choose_entries:
      return "choose_entries";
    case OpKind::mix_streams:
      return "mix_streams";
    case OpKind::residual_add:
      return "residual_add";
    case OpKind::soft_cap:
      return "soft_cap";
    case OpKind::all_reduce:
      return "all_reduce";
    case OpKind::all_gather:
      return "all_gather";
    case OpKind::dispatch_tokens:
      return "dispatch_tokens";
    case OpKind::return_tokens:
      return "return_tokens";
  }
  return "?";
}

Dtype multiplied_in(const Op& op) {
  switch (op.activations) {
    case ActivationMode::exact:
      break;
    case ActivationMode::int8:
      return Dtype::int8;
    case ActivationMode::bf16:
      return Dtype::bf16;
    case ActivationMode::fp8:
      return Dtype::fp8_e4m3;
  }
  return op.activation_dtype;
}

}  // namespace dculab

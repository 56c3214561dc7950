// What a checkpoint calls a model's weights: one table for each family that the engine runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/op.hpp"

namespace dculab {

// How Q, K and V lie in the tensors of a layer.
enum class QkvLayout : std::uint8_t {
  apart,     // a tensor each
  by_group,  // one tensor, [KV heads, group size + 2, head_dim] rows: the queries of a KV head, its K, its V; where
             // groups differ, which is of our own making, as if stacked
  stacked,   // one tensor: all of Q, then K, then V
};

// Modules have a tensor "weight", and some "bias". The full name of a layer's is `model` + `layers` + its number + "."
// + module + ".weight".
struct TensorNames {
  std::string_view model;   // "model."
  std::string_view layers;  // "layers."
  std::string_view lm_head = "lm_head";
  // By slot and part (model/weight_shapes.hpp). lm_head's stands alone, since it is not below `model`. Of experts, '*'
  // is the number of one. The correction bias of a router is a tensor of its own, whose whole name it is.
  std::array<std::array<std::string_view, 3>, kWeightSlots> modules{};
  // Gate, up and down of the MLP for all tokens in a layer that has experts too.
  std::array<std::string_view, 3> shared_mlp{};
  QkvLayout qkv = QkvLayout::apart;
  bool stacked_gate_up = false;  // one tensor: all of gate, then up

  [[nodiscard]] constexpr std::string_view module(WeightSlot slot, std::size_t part) const {
    return modules[static_cast<std::size_t>(slot)][part];
  }
  constexpr void set(WeightSlot slot, std::string_view first, std::string_view second = {},
                     std::string_view third = {}) {
    modules[static_cast<std::size_t>(slot)] = {first, second, third};
  }
};

// Llama's, which most families share.
[[nodiscard]] constexpr TensorNames llama_tensor_names() {
  TensorNames names{.model = "model.", .layers = "layers."};
  names.set(WeightSlot::embed_tokens, "embed_tokens");
  names.set(WeightSlot::attention_norm, "input_layernorm");
  names.set(WeightSlot::qkv_proj, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  names.set(WeightSlot::o_proj, "self_attn.o_proj");
  names.set(WeightSlot::mlp_norm, "post_attention_layernorm");
  names.set(WeightSlot::up_proj, "mlp.gate_proj", "mlp.up_proj");
  names.set(WeightSlot::down_proj, "mlp.down_proj");
  names.set(WeightSlot::final_norm, "norm");
  return names;
}

inline constexpr TensorNames kLlamaTensorNames = llama_tensor_names();

}  // namespace dculab

// What an op's name stands for in the GPU executor: which weights, where its input comes from and its output goes.
#include "engine/executors/gpu_executor.hpp"
#include "engine/executors/plan_checks.hpp"

namespace dculab::engine {

using kernels::gpu::Input;
using kernels::gpu::Output;

// In a parallel block the norm of the next layer, or the last, adds both halves; its own second norm adds nothing.
GpuExecutor::NormBinding GpuExecutor::bind_norm(const Op& op, int layer) const {
  const GpuLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const void* const mlp = is_parallel() ? activations_.mlp_projected.as() : nullptr;
  NormBinding binding{.weights = &weights_.norm,
                      .added = {activations_.projected.as(), mlp},
                      .out = {activations_.normed.as(), options_.activation_dtype},
                      .rows = inputs_.num_tokens()};
  if (op.name == "input_layernorm") {
    binding.weights = &weights.input_layernorm;
    // The first norm follows the embedding, which is already in the residual.
    if (layer == 0) binding.added = {};
  } else if (op.name == "post_attention_layernorm") {
    binding.weights = &weights.post_attention_layernorm;
    if (is_parallel()) binding.added = {};
  } else if (op.name == "word_embeddings_layernorm") {
    binding.weights = &weights_.word_embeddings_layernorm;
    binding.added = {};
    binding.out = {activations_.residual.as(), Dtype::f32};
  } else {
    require(op.name == "norm", op, "is not a norm of this model");
    binding.rows = static_cast<int>(inputs_.logits_tokens().size());
  }
  require(binding.weights->weight.data != nullptr, op, "is not a norm of this model");
  return binding;
}

void GpuExecutor::execute_norm(const Op& op, int layer) {
  const NormBinding binding = bind_norm(op, layer);
  require(op.m == binding.rows && op.n == shape_.hidden_size, op, "has another shape");
  require((op.kind == OpKind::layer_norm) == (shape_.norm == NormKind::layer_norm), op, "is another kind of norm");
  if (op.name == "norm") keep_logits_rows();
  const auto epsilon = static_cast<float>(shape_.norm_eps);
  const Input added[2] = {{binding.added[0], options_.activation_dtype}, {binding.added[1], options_.activation_dtype}};
  if (op.kind == OpKind::rms_norm)
    return device_->rms_norm({.x = added[0],
                              .residual = activations_.residual.as<float>(),
                              .weight = binding.weights->weight,
                              .out = binding.out,
                              .num_tokens = binding.rows,
                              .width = shape_.hidden_size,
                              .epsilon = epsilon});
  device_->layer_norm({.x = {nullptr, Dtype::f32},
                       .weight = binding.weights->weight,
                       .bias = binding.weights->bias,
                       .out = binding.out,
                       .num_tokens = binding.rows,
                       .width = shape_.hidden_size,
                       .epsilon = epsilon,
                       .residual = activations_.residual.as<float>(),
                       .added = {added[0], added[1]}});
}

void GpuExecutor::execute_activation(const Op& op) {
  const int tokens = inputs_.num_tokens(), width = shape_.intermediate_size;
  require(op.m == tokens && op.n == width, op, "has another shape");
  const Input x{activations_.gate_up.as(), options_.activation_dtype};
  const Output out{activations_.activated.as(), options_.activation_dtype};
  if (shape_.mlp == MlpKind::gated)
    return device_->silu_and_mul({.gate_up = x, .out = out, .num_tokens = tokens, .width = width});
  const bool tanh = shape_.activation == ActivationKind::gelu_tanh;
  device_->gelu({.x = x,
                 .out = out,
                 .count = std::int64_t{tokens} * width,
                 .kind = tanh ? kernels::GeluKind::tanh : kernels::GeluKind::erf});
}

// Moves the rows whose logits are wanted to the front. They are in order, so no row is overwritten before it is read.
void GpuExecutor::keep_logits_rows() {
  const auto width = static_cast<std::size_t>(shape_.hidden_size);
  const std::size_t value = static_cast<std::size_t>(bits(options_.activation_dtype)) / 8;
  const auto move_row = [&](const DeviceMemory& rows, std::size_t row_bytes, std::size_t to, std::size_t from) {
    device_->copy(rows.as<std::byte>() + to * row_bytes, rows.as<std::byte>() + from * row_bytes, row_bytes);
  };
  std::size_t row = 0;
  for (const std::int32_t token : inputs_.logits_tokens()) {
    const auto source = static_cast<std::size_t>(token);
    if (source != row) {
      move_row(activations_.residual, width * sizeof(float), row, source);
      move_row(activations_.projected, width * value, row, source);
      if (is_parallel()) move_row(activations_.mlp_projected, width * value, row, source);
    }
    ++row;
  }
}

GpuExecutor::MatmulBinding GpuExecutor::bind_matmul(const Op& op, int layer) const {
  const GpuLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const GpuActivations& buffers = activations_;
  const Dtype dtype = options_.activation_dtype;
  const auto bind = [&](const GpuMatrix& matrix, const DeviceMemory& x, const DeviceMemory& y) {
    return MatmulBinding{&matrix, {x.as(), dtype}, {y.as(), dtype}, inputs_.num_tokens()};
  };
  if (op.name == "qkv_proj") return bind(weights.qkv_proj, buffers.normed, buffers.qkv);
  if (op.name == "o_proj") return bind(weights.o_proj, buffers.attention, buffers.projected);
  if (op.name == (shape_.mlp == MlpKind::gated ? "gate_up_proj" : "up_proj"))
    return bind(weights.gate_up_proj, buffers.normed, buffers.gate_up);
  if (op.name == "down_proj")
    return bind(weights.down_proj, buffers.activated, is_parallel() ? buffers.mlp_projected : buffers.projected);
  require(op.name == "lm_head", op, "is not a matrix of this model");
  MatmulBinding head = bind(weights_.lm_head, buffers.normed, buffers.logits);
  head.y.dtype = Dtype::f32;
  head.rows = static_cast<int>(inputs_.logits_tokens().size());
  return head;
}

void GpuExecutor::execute_matmul(const Op& op, int layer) {
  const MatmulBinding binding = bind_matmul(op, layer);
  const GpuMatrix& weights = *binding.weights;
  require(op.m == binding.rows && op.n == weights.rows && op.k == weights.columns, op,
          "has another shape than its weights");
  require(op.weight_format == weights.format, op, "is planned in another format than its weights");
  const bool is_int8 = weights.format.dtype == Dtype::int8;
  require(op.activations == (is_int8 ? ActivationMode::int8 : ActivationMode::exact), op,
          "is planned with other activations than its kernel takes");
  if (is_int8) return multiply_int8(binding);
  if (weights.format.dtype == Dtype::int4)
    return device_->gptq_matmul({.x = binding.x,
                                 .weight = weights.gptq,
                                 .x_perm = weights.x_perm,
                                 .y = binding.y,
                                 .m = binding.rows,
                                 .y_stride = weights.rows,
                                 .workspace = workspace_.as<float>(),
                                 .bias = weights.bias});
  device_->matmul({.x = binding.x,
                   .w = weights.values,
                   .y = binding.y,
                   .m = binding.rows,
                   .n = weights.rows,
                   .k = weights.columns,
                   .y_stride = weights.rows,
                   .workspace = workspace_.as<float>(),
                   .bias = weights.bias});
}

void GpuExecutor::multiply_int8(const MatmulBinding& binding) {
  const GpuMatrix& weights = *binding.weights;
  device_->quantize_rows({.x = binding.x,
                          .out = activations_.quantized.as<std::int8_t>(),
                          .scale = activations_.quantized_scales.as<float>(),
                          .m = binding.rows,
                          .k = weights.columns});
  device_->int8_matmul({.x = activations_.quantized.as<std::int8_t>(),
                        .x_scale = activations_.quantized_scales.as<float>(),
                        .w = weights.int8_values,
                        .w_scale = weights.int8_scales,
                        .y = binding.y,
                        .m = binding.rows,
                        .n = weights.rows,
                        .k = weights.columns,
                        .y_stride = weights.rows,
                        .bias = weights.bias});
}

}  // namespace dculab::engine

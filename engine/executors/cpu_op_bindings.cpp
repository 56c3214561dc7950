// What an op's name stands for in the CPU executor: where its input comes from, which weights, where its output goes.
#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "engine/executors/cpu_executor.hpp"
#include "engine/executors/plan_checks.hpp"

namespace dculab::engine {
namespace {

struct BoundMatrix {
  kernels::WeightView weight, bias;
};

kernels::MatmulArgs matmul_args(const std::vector<float>& x, std::initializer_list<BoundMatrix> matrices,
                                std::vector<float>& y, int m, int k) {
  kernels::MatmulArgs args;
  args.x = x.data();
  args.num_weights = 0;
  args.y = y.data();
  args.m = m;
  args.k = k;
  for (const BoundMatrix& matrix : matrices) {
    const auto index = static_cast<std::size_t>(args.num_weights++);
    args.weights[index] = matrix.weight;
    args.biases[index] = f32_values(matrix.bias);
  }
  return args;
}

}  // namespace

// In a parallel block the norm of the next layer, or the last, adds both halves; its own second norm adds nothing.
CpuExecutor::NormBinding CpuExecutor::bind_norm(const Op& op, int layer) {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  Activations& buffers = activations_;
  const float* const mlp = is_parallel() ? buffers.mlp_projected.data() : nullptr;
  NormBinding binding{.weight = weights_.norm,
                      .bias = weights_.norm_bias,
                      .added = {buffers.projected.data(), mlp},
                      .out = buffers.normed.data(),
                      .rows = inputs_.num_tokens()};
  if (op.name == "input_layernorm") {
    binding.weight = weights.input_layernorm, binding.bias = weights.input_layernorm_bias;
    // The first norm follows the embedding, which is already in the residual.
    if (layer == 0) binding.added = {};
  } else if (op.name == "post_attention_layernorm") {
    binding.weight = weights.post_attention_layernorm, binding.bias = weights.post_attention_layernorm_bias;
    if (is_parallel()) binding.added = {};
  } else if (op.name == "word_embeddings_layernorm") {
    binding.weight = weights_.word_embeddings_layernorm, binding.bias = weights_.word_embeddings_layernorm_bias;
    binding.added = {};
    binding.out = buffers.residual.data();
  } else {
    require(op.name == "norm", op, "is not a norm of this model");
    binding.rows = static_cast<int>(inputs_.logits_tokens().size());
  }
  require(binding.weight.data != nullptr, op, "is not a norm of this model");
  return binding;
}

void CpuExecutor::execute_norm(const Op& op, int layer) {
  const ModelShape& shape = weights_.shape;
  const NormBinding binding = bind_norm(op, layer);
  require(op.m == binding.rows && op.n == shape.hidden_size, op, "has another shape");
  require((op.kind == OpKind::layer_norm) == (shape.norm == NormKind::layer_norm), op, "is another kind of norm");
  if (op.name == "norm") keep_logits_rows();
  const auto epsilon = static_cast<float>(shape.norm_eps);
  if (op.kind == OpKind::rms_norm)
    return kernels::cpu::rms_norm(threads_, {.x = binding.added[0],
                                             .residual = activations_.residual.data(),
                                             .weight = binding.weight,
                                             .out = binding.out,
                                             .num_tokens = binding.rows,
                                             .width = shape.hidden_size,
                                             .epsilon = epsilon});
  kernels::cpu::layer_norm(threads_, {.weight = f32_values(binding.weight),
                                      .bias = f32_values(binding.bias),
                                      .out = binding.out,
                                      .num_tokens = binding.rows,
                                      .width = shape.hidden_size,
                                      .epsilon = epsilon,
                                      .residual = activations_.residual.data(),
                                      .added = binding.added});
}

void CpuExecutor::execute_activation(const Op& op) {
  const ModelShape& shape = weights_.shape;
  const int tokens = inputs_.num_tokens(), width = shape.intermediate_size;
  require(op.m == tokens && op.n == width, op, "has another shape");
  if (shape.mlp == MlpKind::gated)
    return kernels::cpu::silu_mul(threads_, {.gate_up = activations_.gate_up.data(),
                                             .out = activations_.activated.data(),
                                             .num_tokens = tokens,
                                             .width = width});
  const bool tanh = shape.activation == ActivationKind::gelu_tanh;
  kernels::cpu::gelu(threads_, {.x = activations_.gate_up.data(),
                                .out = activations_.activated.data(),
                                .count = std::int64_t{tokens} * width,
                                .kind = tanh ? kernels::GeluKind::tanh : kernels::GeluKind::erf});
}

// Moves the rows whose logits are wanted to the front. They are in order, so no row is overwritten before it is read.
void CpuExecutor::keep_logits_rows() {
  const auto width = static_cast<std::size_t>(weights_.shape.hidden_size);
  std::size_t row = 0;
  for (const std::int32_t token : inputs_.logits_tokens()) {
    const auto source = static_cast<std::size_t>(token);
    if (source != row)
      for (std::vector<float>* buffer : {&activations_.residual, &activations_.projected, &activations_.mlp_projected})
        if (!buffer->empty())
          std::memcpy(buffer->data() + row * width, buffer->data() + source * width, width * sizeof(float));
    ++row;
  }
}

kernels::MatmulArgs CpuExecutor::bind_matmul(const Op& op, int layer) {
  const ModelShape& shape = weights_.shape;
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  Activations& buffers = activations_;
  const int tokens = inputs_.num_tokens(), hidden = shape.hidden_size;
  if (op.name == "qkv_proj")
    return matmul_args(
        buffers.normed,
        {{weights.q_proj, weights.q_bias}, {weights.k_proj, weights.k_bias}, {weights.v_proj, weights.v_bias}},
        buffers.qkv, tokens, hidden);
  if (op.name == "o_proj")
    return matmul_args(buffers.attention, {{weights.o_proj, weights.o_bias}}, buffers.projected, tokens,
                       shape.query_width());
  if (op.name == "gate_up_proj" && shape.mlp == MlpKind::gated)
    return matmul_args(buffers.normed, {{weights.gate_proj, weights.gate_bias}, {weights.up_proj, weights.up_bias}},
                       buffers.gate_up, tokens, hidden);
  if (op.name == "up_proj" && shape.mlp == MlpKind::plain)
    return matmul_args(buffers.normed, {{weights.up_proj, weights.up_bias}}, buffers.gate_up, tokens, hidden);
  if (op.name == "down_proj")
    return matmul_args(buffers.activated, {{weights.down_proj, weights.down_bias}},
                       is_parallel() ? buffers.mlp_projected : buffers.projected, tokens, shape.intermediate_size);
  require(op.name == "lm_head", op, "is not a matrix of this model");
  const int logits_rows = static_cast<int>(inputs_.logits_tokens().size());
  return matmul_args(buffers.normed, {{weights_.lm_head, {}}}, buffers.logits, logits_rows, hidden);
}

}  // namespace dculab::engine

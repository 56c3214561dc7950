#include "engine/executors/gpu_buffers.hpp"

#include <algorithm>
#include <cstddef>

#include "engine/executors/gpu_expanded_kv.hpp"
#include "engine/executors/gpu_expert_routing.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"

namespace dculab::engine {
namespace {

using DevicePointer = std::shared_ptr<kernels::gpu::Device>;

[[nodiscard]] DeviceMemory make_tensor(const DevicePointer& device, Dtype dtype, int rows, int columns) {
  return {device, static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) *
                      static_cast<std::size_t>(bits(dtype)) / 8};
}

// All but the residual and logits.
constexpr std::array kOfActivationDtype{Buffer::normed,
                                        Buffer::qkv,
                                        Buffer::queries,
                                        Buffer::latent_queries,
                                        Buffer::latent_outputs,
                                        Buffer::attention,
                                        Buffer::projected,
                                        Buffer::mlp_projected,
                                        Buffer::up,
                                        Buffer::activated,
                                        Buffer::expert_up,
                                        Buffer::expert_activated,
                                        Buffer::expert_output};

[[nodiscard]] int rows_of(const ModelShape& shape, Buffer buffer, const GpuStepLimits& limits) {
  if (buffer == Buffer::latent_queries || buffer == Buffer::latent_outputs) return latent_tokens(limits);
  return limits.max_num_batched_tokens * rows_per_token(shape, buffer);
}

// Rows and columns of a matrix of a layer.
struct LayerMatrix {
  WeightSlot slot = WeightSlot::none;
  int n = 0, k = 0;
};

// Those of a kind that all tokens are multiplied by; where there is none, of size 0.
[[nodiscard]] std::array<LayerMatrix, 6> matrices_of(const ModelShape& shape, const LayerKind& kind) {
  const int hidden = shape.hidden_size;
  const Mla* const latents = kind.mla();
  return {
      {{latents != nullptr ? WeightSlot::qkv_a_proj : WeightSlot::qkv_proj, width(shape, kind, Buffer::qkv), hidden},
       {WeightSlot::q_b_proj, width(shape, kind, Buffer::queries), latents != nullptr ? latents->q_lora_rank : 0},
       {WeightSlot::o_proj, hidden, width(shape, kind, Buffer::attention)},
       {WeightSlot::router, width(shape, kind, Buffer::router_logits), hidden},
       {WeightSlot::up_proj, width(shape, kind, Buffer::up), hidden},
       {WeightSlot::down_proj, hidden, width(shape, kind, Buffer::activated)}}};
}

// Values of a token that are rounded to int8 at once, at most.
[[nodiscard]] int quantized_width(const ModelShape& shape) {
  if (shape.layer_format().dtype != Dtype::int8) return 0;
  return std::max({shape.hidden_size, width(shape, Buffer::attention), width(shape, Buffer::activated)});
}

}  // namespace

std::size_t split_k_floats(Dtype weights, int m, int n, int k) {
  if (weights == Dtype::int8 || n == 0 || k == 0) return 0;
  return weights == Dtype::int4 ? lower::dculab_gpu::gptq_matmul_workspace(m, n, k)
                                : lower::dculab_gpu::matmul_workspace(m, n, k);
}

std::size_t gpu_workspace_floats(const ModelShape& shape, const GpuStepLimits& limits, int partition_tokens,
                                 int longest_context) {
  const WeightFormat layers = shape.layer_format();
  const std::int64_t of_one = lower::dculab_gpu::decode_partials(shape, longest_context, partition_tokens);
  auto floats = static_cast<std::size_t>(
      lower::dculab_gpu::all_partials(of_one * limits.decode_tokens, limits.max_num_seqs, limits.decode_partials));
  const auto reserve = [&](WeightFormat format, int n, int k) {
    for (int m = 1; m <= limits.max_num_batched_tokens; ++m)
      floats = std::max(floats, split_k_floats(format.dtype, m, n, k));
  };
  // Each kind's own: a narrower matrix has fewer tiles, so its k is cut into more parts, which may need more.
  for (const LayerKind& kind : shape.kinds)
    for (const LayerMatrix& matrix : matrices_of(shape, kind))
      reserve(shape.slot_format(matrix.slot, kind, layers), matrix.n, matrix.k);
  reserve(shape.head_format(layers), shape.vocab_size, shape.hidden_size);
  return floats;
}

Bytes gpu_step_memory(const ModelShape& shape, Dtype activation, const GpuStepLimits& limits, int partition_tokens,
                      int block_size) {
  const double tokens = limits.max_num_batched_tokens, seqs = limits.max_num_seqs;
  const double longest = shape.max_position_embeddings;
  double values = 0, angles = 0;
  for (const LayerKind& kind : shape.kinds) angles += longest * Rotation(kind).rotary_dim;
  for (const Buffer buffer : kOfActivationDtype)
    values += static_cast<double>(width(shape, buffer)) * rows_of(shape, buffer, limits);
  const auto floats =
      static_cast<double>(gpu_workspace_floats(shape, limits, partition_tokens, shape.max_position_embeddings));
  constexpr double kTokenInputs = 4 + 4 + 8;  // id, position, slot
  return storage(activation, values) +
         storage(Dtype::f32, tokens * (shape.hidden_size + width(shape, Buffer::router_logits)) +
                                 static_cast<double>(logits_rows(limits)) * shape.vocab_size + angles + floats) +
         GpuExpertRouting::memory(shape, limits.max_num_batched_tokens) +
         lower::dculab_gpu::ExpandedSizes(shape, shape.max_position_embeddings, limits.expanded_kv).memory(activation) +
         Bytes(tokens * (kTokenInputs + quantized_width(shape) + sizeof(float)) +
               2 * 4 * seqs * (longest / block_size + 3)) +
         (limits.decode_tokens > 1 ? Bytes(8 * tokens + 4 * seqs) : Bytes());
}

GpuActivations::GpuActivations(const DevicePointer& device, const ModelShape& shape, Dtype activation,
                               const GpuStepLimits& limits) {
  const int tokens = limits.max_num_batched_tokens;
  for (const Buffer buffer : kOfActivationDtype)
    buffers[index(buffer)] = make_tensor(device, activation, rows_of(shape, buffer, limits), width(shape, buffer));
  buffers[index(Buffer::residual)] = make_tensor(device, Dtype::f32, tokens, width(shape, Buffer::residual));
  buffers[index(Buffer::router_logits)] = make_tensor(device, Dtype::f32, tokens, width(shape, Buffer::router_logits));
  buffers[index(Buffer::logits)] = make_tensor(device, Dtype::f32, logits_rows(limits), shape.vocab_size);
  if (const int columns = quantized_width(shape); columns > 0) {
    quantized = make_tensor(device, Dtype::int8, tokens, columns);
    quantized_scales = make_tensor(device, Dtype::f32, tokens, 1);
  }
}

}  // namespace dculab::engine

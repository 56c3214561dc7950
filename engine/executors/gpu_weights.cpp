#include "engine/executors/gpu_weights.hpp"

#include <span>

#include "core/error.hpp"
#include "engine/executors/gpu_quantized_weights.hpp"

namespace dculab::engine {
namespace {

using kernels::WeightView;
using kernels::gpu::Input;

// Matrices that share their input, and their biases: all have one or none has.
struct BoundRows {
  std::vector<WeightView> matrices, biases;
};

class Uploader {
 public:
  Uploader(const std::shared_ptr<kernels::gpu::Device>& device, GpuWeights& weights)
      : device_(device), weights_(weights) {}

  GpuMatrix matrix(const BoundRows& bound, int columns) {
    GpuMatrix matrix{.columns = columns, .format = {bound.matrices[0].dtype, bound.matrices[0].group_size}};
    for (const WeightView& view : bound.matrices) {
      matrix.rows += view.rows;
      if (view.dtype != matrix.format.dtype || view.group_size != matrix.format.group_size)
        throw InputError("the GPU engine needs Q, K and V (and gate and up) in one format");
      if (view.permutation != bound.matrices[0].permutation)
        throw InputError("the GPU engine needs one g_idx for Q, K and V (and for gate and up); use the CPU");
    }
    if (matrix.format.dtype == Dtype::int4)
      upload_int4(bound.matrices, matrix);
    else if (matrix.format.dtype == Dtype::int8)
      upload_int8(bound.matrices, matrix);
    else
      matrix.values = rows(bound.matrices, columns);
    if (!bound.biases.empty() && bound.biases[0].data != nullptr)
      matrix.bias = static_cast<const float*>(rows(bound.biases, 1).data);
    return matrix;
  }

  GpuNorm norm(const WeightView& weight, const WeightView& bias) {
    if (weight.data == nullptr) return {};
    return {rows({&weight, 1}, 1), bias.data == nullptr ? Input{} : rows({&bias, 1}, 1)};
  }

  // The rows of all views, one after another; `columns` values each.
  Input rows(std::span<const WeightView> views, int columns) {
    std::size_t total = 0;
    for (const WeightView& view : views) total += bytes(view, columns);
    const DeviceMemory& memory = allocate(total);
    std::size_t offset = 0;
    for (const WeightView& view : views) {
      device_->upload(memory.as<std::byte>() + offset, view.data, bytes(view, columns));
      offset += bytes(view, columns);
    }
    return {memory.as(), views.front().dtype};
  }

 private:
  [[nodiscard]] static std::size_t bytes(const WeightView& view, int columns) {
    return static_cast<std::size_t>(view.rows) * static_cast<std::size_t>(columns) *
           static_cast<std::size_t>(bits(view.dtype)) / 8;
  }

  [[nodiscard]] const DeviceMemory& allocate(std::size_t bytes) {
    return weights_.memory.emplace_back(device_, bytes, OperandRole::weight);
  }

  // Null for an empty array.
  template <typename T>
  [[nodiscard]] const T* array(const std::vector<T>& values) {
    if (values.empty()) return nullptr;
    const DeviceMemory& memory = allocate(values.size() * sizeof(T));
    device_->upload(memory.as(), values.data(), values.size() * sizeof(T));
    return memory.as<T>();
  }

  void upload_int4(std::span<const WeightView> views, GpuMatrix& matrix) {
    const GptqArrays arrays = to_gptq_arrays(unpack_rows(views, matrix.columns));
    matrix.gptq = {.qweight = array(arrays.qweight),
                   .qzeros = array(arrays.qzeros),
                   .scales = array(arrays.scales),
                   .in_features = matrix.columns,
                   .out_features = matrix.rows,
                   .group_size = matrix.format.group_size,
                   .zero_offset = 0};
    matrix.x_perm = array(arrays.x_perm);
    device_->synchronize();  // the arrays go
  }

  void upload_int8(std::span<const WeightView> views, GpuMatrix& matrix) {
    const Int8Arrays arrays = to_int8_arrays(unpack_rows(views, matrix.columns));
    matrix.int8_values = array(arrays.values);
    matrix.int8_scales = array(arrays.scales);
    device_->synchronize();
  }

  const std::shared_ptr<kernels::gpu::Device>& device_;
  GpuWeights& weights_;
};

[[nodiscard]] GpuLayerWeights upload_layer(Uploader& uploader, const ModelShape& shape, const LayerWeights& layer) {
  const int hidden = shape.hidden_size;
  const BoundRows up = shape.mlp == MlpKind::gated
                           ? BoundRows{{layer.gate_proj, layer.up_proj}, {layer.gate_bias, layer.up_bias}}
                           : BoundRows{{layer.up_proj}, {layer.up_bias}};
  return {
      .input_layernorm = uploader.norm(layer.input_layernorm, layer.input_layernorm_bias),
      .qkv_proj = uploader.matrix(
          {{layer.q_proj, layer.k_proj, layer.v_proj}, {layer.q_bias, layer.k_bias, layer.v_bias}}, hidden),
      .o_proj = uploader.matrix({{layer.o_proj}, {layer.o_bias}}, shape.query_width()),
      .post_attention_layernorm = uploader.norm(layer.post_attention_layernorm, layer.post_attention_layernorm_bias),
      .gate_up_proj = uploader.matrix(up, hidden),
      .down_proj = uploader.matrix({{layer.down_proj}, {layer.down_bias}}, shape.intermediate_size)};
}

}  // namespace

GpuWeights upload_weights(const std::shared_ptr<kernels::gpu::Device>& device, const ModelWeights& weights) {
  GpuWeights on_device;
  Uploader uploader(device, on_device);
  const ModelShape& shape = weights.shape;
  const int hidden = shape.hidden_size;
  on_device.embed_tokens = uploader.rows({&weights.embed_tokens, 1}, hidden);
  on_device.word_embeddings_layernorm =
      uploader.norm(weights.word_embeddings_layernorm, weights.word_embeddings_layernorm_bias);
  for (const LayerWeights& layer : weights.layers) on_device.layers.push_back(upload_layer(uploader, shape, layer));
  on_device.norm = uploader.norm(weights.norm, weights.norm_bias);
  const bool tied = weights.lm_head.data == weights.embed_tokens.data;
  on_device.lm_head = tied ? GpuMatrix{.rows = shape.vocab_size,
                                       .columns = hidden,
                                       .format = {on_device.embed_tokens.dtype, 0},
                                       .values = on_device.embed_tokens}
                           : uploader.matrix({{weights.lm_head}, {}}, hidden);
  device->synchronize();
  return on_device;
}

}  // namespace dculab::engine

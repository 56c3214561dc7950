#include "engine/executors/gpu_weights.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/executors/gpu_quantized_weights.hpp"
#include "engine/executors/plan_walk.hpp"

namespace dculab::engine {
namespace {

using kernels::WeightView;
using kernels::gpu::Input;

class Uploader {
 public:
  // gain_offset: what norms add to their weights.
  Uploader(const std::shared_ptr<kernels::gpu::Device>& device, GpuWeights& weights, float gain_offset)
      : device_(device), weights_(weights), gain_offset_(gain_offset) {}

  GpuSlot slot(const SlotWeights& bound) {
    if (!bound.expert_weights[0].empty()) return {.matrix = experts(bound), .norm = {}, .parts = {}};
    const auto count = static_cast<std::size_t>(bound.count);
    const std::span<const WeightView> weights = std::span(bound.weights).first(count);
    const std::span<const WeightView> biases = std::span(bound.biases).first(count);
    if (weights.empty()) return {};
    const Input bias = bias_of(weights, biases);
    if (bound.columns == 0 && count > 1)
      return {.matrix = {}, .norm = {}, .parts = {gains(weights[0]), gains(weights[1])}};
    if (bound.columns == 0) return {.matrix = {}, .norm = {gains(weights[0]), bias}, .parts = {}};
    GpuSlot slot{.matrix = matrix(weights, bound.columns), .norm = {}, .parts = {}};
    slot.matrix.bias = static_cast<const float*>(bias.data);
    return slot;
  }

  // A router's, beside its matrix.
  [[nodiscard]] const float* correction_bias(const SlotWeights& bound) {
    const WeightView& bias = bound.weights[kCorrectionBias];
    return bias.data == nullptr ? nullptr : static_cast<const float*>(rows({&bias, 1}, 1).data);
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
  // In F32, zeros for matrices without one; null where none has one.
  [[nodiscard]] Input bias_of(std::span<const WeightView> weights, std::span<const WeightView> biases) {
    const auto has_data = [](const WeightView& bias) { return bias.data != nullptr; };
    if (std::ranges::none_of(biases, has_data)) return {};
    if (std::ranges::all_of(biases, has_data)) return rows(biases, 1);
    std::vector<float> values;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      values.resize(values.size() + static_cast<std::size_t>(weights[i].rows));
      if (has_data(biases[i])) std::copy_n(f32_values(biases[i]), weights[i].rows, values.end() - weights[i].rows);
    }
    return {array(values), Dtype::f32};
  }

  // What a norm multiplies by, in F32 where that is not the stored weight. Null where there is none.
  [[nodiscard]] Input gains(const WeightView& view) {
    if (view.data == nullptr) return {};
    if (gain_offset_ == 0) return rows({&view, 1}, 1);
    std::vector<float> raised(static_cast<std::size_t>(view.rows));
    widen(view.data, view.dtype, raised);
    for (float& each : raised) each += gain_offset_;
    const DeviceMemory& memory = allocate(raised.size() * sizeof(float));
    device_->upload(memory.as(), raised.data(), raised.size() * sizeof(float));
    return {memory.as(), Dtype::f32};
  }

  [[nodiscard]] GpuMatrix matrix(std::span<const WeightView> views, int columns) {
    GpuMatrix matrix{.columns = columns, .format = {views[0].dtype, views[0].group_size}};
    for (const WeightView& view : views) {
      matrix.rows += view.rows;
      if (view.dtype != matrix.format.dtype || view.group_size != matrix.format.group_size)
        throw InputError("the GPU engine needs Q, K and V (and gate and up) in one format");
      if (view.permutation != views[0].permutation)
        throw InputError("the GPU engine needs one g_idx for Q, K and V (and for gate and up); use the CPU");
    }
    if (matrix.format.dtype == Dtype::int4)
      upload_int4(views, views.size(), matrix);
    else if (matrix.format.dtype == Dtype::int8)
      upload_int8(views, matrix);
    else
      upload_values(views, views.size(), matrix);
    return matrix;
  }

  // Those of each expert, its parts one below the other.
  [[nodiscard]] GpuMatrix experts(const SlotWeights& bound) {
    const std::vector<WeightView> weights = by_expert(bound, bound.expert_weights);
    GpuMatrix matrix{.columns = bound.columns, .format = {weights[0].dtype, weights[0].group_size}};
    matrix.experts = static_cast<int>(bound.expert_weights[0].size());
    for (const WeightView& view : std::span(weights).first(static_cast<std::size_t>(bound.count)))
      matrix.rows += view.rows;
    for (const WeightView& view : weights)
      if (view.dtype != matrix.format.dtype || view.group_size != matrix.format.group_size)
        throw InputError("the GPU engine needs all experts of a layer in one format");
    if (matrix.format.dtype == Dtype::int4)
      upload_int4(weights, static_cast<std::size_t>(bound.count), matrix);
    else
      upload_values(weights, static_cast<std::size_t>(bound.count), matrix);
    if (!bound.expert_biases[0].empty())
      matrix.bias = static_cast<const float*>(rows(by_expert(bound, bound.expert_biases), 1).data);
    return matrix;
  }

  using ExpertViews = std::array<std::vector<WeightView>, kMostParts>;

  // Of the first expert each part, then of the next.
  [[nodiscard]] static std::vector<WeightView> by_expert(const SlotWeights& bound, const ExpertViews& parts) {
    std::vector<WeightView> views;
    for (std::size_t expert = 0; expert < parts[0].size(); ++expert)
      for (std::size_t part = 0; part < static_cast<std::size_t>(bound.count); ++part)
        views.push_back(parts[part][expert]);
    return views;
  }

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

  // Each `parts` of the views are one matrix.
  void upload_values(std::span<const WeightView> views, std::size_t parts, GpuMatrix& matrix) {
    matrix.values = rows(views, matrix.columns);
    if (matrix.format.dtype != Dtype::fp8_e4m3) return;
    const Fp8ScaleArray scales = to_fp8_scales(views, parts, matrix.columns);
    matrix.scales = {.values = array(scales.values),
                     .row_shift = scales.row_shift,
                     .column_shift = scales.column_shift,
                     .column_blocks = scales.column_blocks};
    device_->synchronize();
  }

  void upload_int4(std::span<const WeightView> views, std::size_t parts, GpuMatrix& matrix) {
    GptqArrays arrays;
    for (std::size_t first = 0; first < views.size(); first += parts)
      append(arrays, to_gptq_arrays(unpack_rows(views.subspan(first, parts), matrix.columns)), matrix.columns);
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
  float gain_offset_;
};

}  // namespace

GpuWeights upload_weights(const std::shared_ptr<kernels::gpu::Device>& device, const ModelWeights& weights) {
  GpuWeights on_device;
  Uploader uploader(device, on_device, weights.shape.unit_offset_norms ? 1.0F : 0.0F);
  const auto upload = [&](WeightSlot slot, int layer) { return uploader.slot(weights.in(slot, layer)); };
  const WeightView& embedding = weights.outer[WeightSlot::embed_tokens].weights[0];
  on_device.embed_tokens = uploader.rows({&embedding, 1}, weights.shape.hidden_size);
  on_device.layers.resize(weights.layers.size());
  for (std::size_t each = 0; each < kWeightSlots; ++each) {
    const auto slot = static_cast<WeightSlot>(each);
    for (std::size_t layer = 0; is_of_layer(slot) && layer < weights.layers.size(); ++layer)
      on_device.layers[layer][each] = upload(slot, static_cast<int>(layer));
    for (std::size_t layer = 0; slot == WeightSlot::router && layer < weights.layers.size(); ++layer)
      on_device.layers[layer][each].correction_bias = uploader.correction_bias(weights.layers[layer][slot]);
  }
  for (const WeightSlot slot : {WeightSlot::embed_norm, WeightSlot::final_norm})
    on_device.outside[index(slot)] = upload(slot, 0);
  GpuSlot& head = on_device.outside[index(WeightSlot::lm_head)];
  if (weights.outer[WeightSlot::lm_head].weights[0].data == embedding.data)  // tied
    head.matrix = {.rows = weights.shape.vocab_size,
                   .columns = weights.shape.hidden_size,
                   .format = {on_device.embed_tokens.dtype, 0},
                   .values = on_device.embed_tokens};
  else
    head = upload(WeightSlot::lm_head, 0);
  device->synchronize();
  return on_device;
}

}  // namespace dculab::engine

#include "engine/executors/gpu_weights.hpp"

#include <initializer_list>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

using kernels::WeightView;
using kernels::gpu::Input;

class Uploader {
 public:
  Uploader(const std::shared_ptr<kernels::gpu::Device>& device, GpuWeights& weights)
      : device_(device), weights_(weights) {}

  // The rows of all views, one after another; `columns` values each.
  Input upload(std::initializer_list<WeightView> views, int columns) {
    std::size_t total = 0;
    for (const WeightView& view : views) {
      if (view.dtype != views.begin()->dtype)
        throw InputError("the GPU engine needs Q, K and V (and gate and up) in one dtype");
      total += bytes(view, columns);
    }
    const DeviceMemory& memory = weights_.memory.emplace_back(device_, total, OperandRole::weight);
    std::size_t offset = 0;
    for (const WeightView& view : views) {
      device_->upload(memory.as<std::byte>() + offset, view.data, bytes(view, columns));
      offset += bytes(view, columns);
    }
    return {memory.as(), views.begin()->dtype};
  }

 private:
  [[nodiscard]] static std::size_t bytes(const WeightView& view, int columns) {
    return static_cast<std::size_t>(view.rows) * static_cast<std::size_t>(columns) *
           static_cast<std::size_t>(bits(view.dtype)) / 8;
  }

  const std::shared_ptr<kernels::gpu::Device>& device_;
  GpuWeights& weights_;
};

}  // namespace

GpuWeights upload_weights(const std::shared_ptr<kernels::gpu::Device>& device, const LlamaWeights& weights) {
  GpuWeights on_device;
  Uploader uploader(device, on_device);
  const ModelShape& shape = weights.shape;
  const int hidden = shape.hidden_size;
  on_device.embed_tokens = uploader.upload({weights.embed_tokens}, hidden);
  for (const LayerWeights& layer : weights.layers)
    on_device.layers.push_back({.input_layernorm = uploader.upload({layer.input_layernorm}, 1),
                                .qkv_proj = uploader.upload({layer.q_proj, layer.k_proj, layer.v_proj}, hidden),
                                .o_proj = uploader.upload({layer.o_proj}, shape.query_width()),
                                .post_attention_layernorm = uploader.upload({layer.post_attention_layernorm}, 1),
                                .gate_up_proj = uploader.upload({layer.gate_proj, layer.up_proj}, hidden),
                                .down_proj = uploader.upload({layer.down_proj}, shape.intermediate_size)});
  on_device.norm = uploader.upload({weights.norm}, 1);
  const bool tied = weights.lm_head.data == weights.embed_tokens.data;
  on_device.lm_head = tied ? on_device.embed_tokens : uploader.upload({weights.lm_head}, hidden);
  device->synchronize();
  return on_device;
}

}  // namespace dculab::engine

#include "engine/executors/gpu_expanded_kv.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/executors/expanded_kv.hpp"
#include "lower/dculab_gpu/step_buffers.hpp"

namespace dculab::engine {
namespace {

using namespace lower::dculab_gpu;

[[nodiscard]] std::int64_t whole(Bytes bytes) { return static_cast<std::int64_t>(bytes.value()); }

[[nodiscard]] DeviceMemory f16_values(const std::shared_ptr<kernels::gpu::Device>& device, std::int64_t count) {
  return {device, static_cast<std::size_t>(count) * 2};
}

}  // namespace

GpuExpandedKv::GpuExpandedKv(const std::shared_ptr<kernels::gpu::Device>& device, const ModelShape& shape,
                             Dtype activation, int longest, Bytes most)
    : device_(device), activation_(activation), most_bytes_(whole(most)) {
  const ExpandedSizes sizes(shape, longest, most);
  if (sizes.blocks == 0) return;
  latents_ =
      DeviceMemory(device, static_cast<std::size_t>(sizes.latents) * static_cast<std::size_t>(bits(activation)) / 8);
  rows_ = f16_values(device, sizes.rows);
  k_ = f16_values(device, sizes.heads * kExpandedHeadDim);
  v_ = f16_values(device, sizes.heads * kExpandedValueDim);
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(sizes.blocks));
  std::iota(blocks.begin(), blocks.end(), 0);
  block_table_ = DeviceMemory(device, blocks.size() * sizeof(std::int32_t), OperandRole::block_table);
  device->upload(block_table_.as(), blocks.data(), blocks.size() * sizeof(std::int32_t));
  device->synchronize();
}

int GpuExpandedKv::heads_at_once(const Mla& attention, int context) const {
  return expanded_heads(context, attention.num_attention_heads, most_bytes_);
}

kernels::KvCacheView GpuExpandedKv::cache() const {
  return {.k = k_.as(),
          .v = v_.as(),
          .dtype = Dtype::f16,
          .num_blocks = num_blocks_,
          .num_kv_heads = num_heads_,
          .block_size = kExpandedBlock,
          .head_dim = kExpandedHeadDim,
          .value_dim = kExpandedValueDim};
}

void GpuExpandedKv::expand(const Mla& attention, const GpuExpandedPart& part, const kernels::KvCacheView& cache,
                           const std::int32_t* block_table, int context, const kernels::gpu::Matmul& product) {
  kernels::LatentSizes sizes = latent_sizes(attention);
  sizes.num_heads = num_heads_ = part.num_heads;
  num_blocks_ = ceiling_quotient(context, kExpandedBlock);
  kernels::gpu::Matmul matmul = product;
  const std::int64_t first_row = std::int64_t{part.first_head} * sizes.expanded_head_dim();
  matmul.w.data = static_cast<const std::byte*>(matmul.w.data) + first_row * matmul.k * bits(matmul.w.dtype) / 8;
  matmul.scales.first_row = static_cast<int>(first_row);
  matmul.x = {latents_.as(), activation_}, matmul.x_stride = sizes.latent_width();
  matmul.y = {rows_.as(), Dtype::f16}, matmul.n = matmul.y_stride = sizes.num_heads * sizes.expanded_head_dim();
  for (int begin = 0; begin < context; begin += kExpandedPiece) {
    const int end = std::min(context, begin + kExpandedPiece);
    device_->gather_latents(
        {.cache = cache, .block_table = block_table, .begin = begin, .end = end, .out = {latents_.as(), activation_}});
    matmul.m = end - begin;
    device_->matmul(matmul);
    device_->store_expanded({.sizes = sizes,
                             .expanded = {rows_.as(), Dtype::f16},
                             .latents = {latents_.as(), activation_},
                             .cache = this->cache(),
                             .first_slot = begin,
                             .num_tokens = end - begin});
  }
}

}  // namespace dculab::engine

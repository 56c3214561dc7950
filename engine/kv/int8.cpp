// int8: beside K and V, or latents, a scale for each token and head, which belongs to the blocks.
#include <algorithm>

#include "engine/kv/kv_layouts.hpp"

namespace dculab::engine {
namespace {

std::vector<KvPart> int8_parts(const KvLayerSize& layer, const KvCacheOptions& options) {
  const std::size_t heads = layer.heads(options.block_size);
  std::vector<KvPart> parts = block_parts(heads * static_cast<std::size_t>(layer.head_dim), layer, options);
  for (const KvPart& scales : block_parts(heads * sizeof(float), layer, options)) parts.push_back(scales);
  return parts;
}

kernels::KvExtras int8_extras(std::span<const std::span<std::byte>> parts, const KvCacheOptions& /*options*/,
                              int /*layer*/) {
  const auto scales = [&](std::size_t part) { return reinterpret_cast<float*>(parts[part].data()); };
  return kernels::Int8KvScales{.k = scales(parts.size() / 2), .v = scales(parts.size() - 1)};
}

kernels::KvExtras int8_of_heads(const kernels::KvCacheView& view, int first_kv_head) {
  const auto scales = view.extras.as<kernels::Int8KvScales>();
  const std::ptrdiff_t rows = std::ptrdiff_t{first_kv_head} * view.block_size;
  return kernels::Int8KvScales{.k = scales.k + rows, .v = scales.v + rows};
}

void fill_int8(const kernels::KvCacheView& view, std::span<const std::span<std::byte>> parts, std::uint64_t seed) {
  for (const std::span<std::byte> values : parts.first(parts.size() / 2)) fill_randomly(values, view.dtype, seed);
  for (const std::span<std::byte> scales : parts.last(parts.size() / 2))
    std::fill_n(reinterpret_cast<float*>(scales.data()), scales.size() / sizeof(float), 1.0F / 127);
}

}  // namespace

const KvLayout kInt8Layout{
    .parts = int8_parts, .extras = int8_extras, .of_heads = int8_of_heads, .fill_randomly = fill_int8};

}  // namespace dculab::engine

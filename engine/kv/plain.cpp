// Plain numbers, and FP8 with scales of a layer: K and V, or latents, [num_blocks, num_kv_heads, block_size, head_dim].
#include "engine/kv/kv_layouts.hpp"

namespace dculab::engine {
namespace {

std::vector<KvPart> plain_parts(const KvLayerSize& layer, const KvCacheOptions& options) {
  const std::size_t values = layer.heads(options.block_size) * static_cast<std::size_t>(layer.head_dim);
  return block_parts(values * static_cast<std::size_t>(bits(options.dtype)) / 8, layer, options);
}

void fill_plain(const kernels::KvCacheView& view, std::span<const std::span<std::byte>> parts, std::uint64_t seed) {
  for (const std::span<std::byte> part : parts) fill_randomly(part, view.dtype, seed);
}

kernels::KvExtras fp8_extras(std::span<const std::span<std::byte>> /*parts*/, const KvCacheOptions& options,
                             int layer) {
  if (options.fp8_scales.empty()) return {};
  return options.fp8_scales[static_cast<std::size_t>(layer)];
}

}  // namespace

const KvLayout kPlainLayout{.parts = plain_parts, .fill_randomly = fill_plain};
const KvLayout kFp8Layout{.parts = plain_parts, .extras = fp8_extras, .fill_randomly = fill_plain};

}  // namespace dculab::engine

// Plain numbers and FP8: K and V, or latents, [num_blocks, num_kv_heads, block_size, head_dim].
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

}  // namespace

const KvLayout kPlainLayout{.parts = plain_parts, .fill_randomly = fill_plain};

}  // namespace dculab::engine

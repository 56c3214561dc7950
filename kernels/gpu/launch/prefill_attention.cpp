#include "kernels/gpu/attention/prefill_attention.hip.hpp"

#include "kernels/gpu/launch/start.hpp"
#include "kernels/gpu/launch/supported.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

template <typename Word, int kHeadDim>
void start_tiles(Stream& stream, const PrefillAttention& args) {
  const int rows = args.max_query_len * (args.num_heads / args.cache.num_kv_heads);
  const int tiles = ceiling_quotient(rows, PrefillTiles<Word, kHeadDim>::kTile.rows);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = tiles, .y = args.cache.num_kv_heads, .z = args.num_seqs, .threads = kPrefillThreads},
           prefill_attention_kernel<kWave, Word, kHeadDim>, args);
  });
}

template <typename Word, int... kHeadDims>
void start_head_dim(Stream& stream, const PrefillAttention& args, std::integer_sequence<int, kHeadDims...>) {
  const auto start_if = [&]<int kHeadDim>() {
    if (args.cache.head_dim == kHeadDim) start_tiles<Word, kHeadDim>(stream, args);
    return args.cache.head_dim == kHeadDim;
  };
  if ((start_if.template operator()<kHeadDims>() || ...)) return;
  std::string known;
  ((known += (known.empty() ? "" : ", ") + std::to_string(kHeadDims)), ...);
  throw InputError("attention with head_dim " + std::to_string(args.cache.head_dim) +
                   " has no GPU kernel; there is one for " + known);
}

void require_supported(const PrefillAttention& args) {
  require_dtype("a KV cache", args.cache.dtype, {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2});
  require_activation("Q", args.q.dtype);
  require_activation("the output of attention", args.out.dtype);
  if (args.cache.block_size < 1 || args.cache.block_size > 256)
    throw InputError("KV blocks of " + std::to_string(args.cache.block_size) +
                     " tokens have no GPU kernel; there is one for 1 to 256");
  if (args.q_stride % kWide != 0 || reinterpret_cast<std::uintptr_t>(args.q.data) % 16 != 0)
    throw InputError("Q must start at a multiple of 16 bytes and its tokens lie multiples of " + std::to_string(kWide) +
                     " values apart (here: " + std::to_string(args.q_stride) + ")");
}

// The kernel counts in 16 bytes, with 32 bits.
void require_reachable(const KvCacheView& cache) {
  const double bytes = static_cast<double>(cache.num_blocks) * cache.num_kv_heads * cache.block_size * cache.head_dim *
                       bits(cache.dtype) / 8;
  if (bytes > 0x1p31 * sizeof(KvBytes))
    throw InputError("the K or V of one layer has " + std::to_string(bytes / 0x1p30) +
                     " GiB, and the GPU's attention of prefill reaches 32; use fewer blocks");
}

}  // namespace

void start(Stream& stream, const PrefillAttention& args) {
  require_supported(args);
  require_reachable(args.cache);
  constexpr std::integer_sequence<int, 32, 64, 80, 96, 128, 256> kHeadDims;
  if (prefill_arithmetic(args.q.dtype, args.cache.dtype) == PrefillArithmetic::half_pairs)
    start_head_dim<HalfPair>(stream, args, kHeadDims);
  else
    start_head_dim<float>(stream, args, kHeadDims);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD

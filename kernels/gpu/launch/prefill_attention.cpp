#include "kernels/gpu/attention/prefill_attention.hip.hpp"

#include "kernels/gpu/launch/cache_type.hpp"
#include "kernels/gpu/launch/dispatch.hpp"
#include "kernels/gpu/launch/prefill_grid.hpp"
#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

template <typename Word, int kHeadDim>
void start_tiles(Stream& stream, const PrefillAttention& args) {
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, prefill_grid(args, PrefillTiles<Word, kHeadDim>::kTile.rows),
           prefill_attention_kernel<kWave, Word, kHeadDim>, args);
  });
}

template <typename Word>
void start_expanded(Stream& stream, const PrefillAttention& args) {
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, prefill_grid(args, PrefillTiles<Word, kExpandedHeadDim, kExpandedValueDim>::kTile.rows),
           expanded_attention_kernel<kWave, Word>, args);
  });
}

template <typename Word>
void start_head_dim(Stream& stream, const PrefillAttention& args) {
  const auto start_one_of = [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    with_count<kHeadDims[kIndex]...>(args.cache.head_dim,
                                     [&]<int kHeadDim>() { start_tiles<Word, kHeadDim>(stream, args); });
  };
  start_one_of(std::make_index_sequence<std::size(kHeadDims)>{});
}

[[nodiscard]] bool is_expanded(const KvCacheView& cache) { return cache.value_width() != cache.head_dim; }

void require_expanded(const PrefillAttention& args) {
  const KvCacheView& cache = args.cache;
  const auto fits = [](int dim, int most) { return dim > 0 && dim <= most && dim % 8 == 0; };
  if (cache.head_dim == kExpandedHeadDim && cache.value_width() == kExpandedValueDim && cache.dtype == Dtype::f16 &&
      cache.num_kv_heads == args.num_heads && fits(args.query_dim, kExpandedHeadDim) &&
      fits(args.out_dim, kExpandedValueDim))
    return;
  throw InputError("attention with heads of " + std::to_string(args.query_dim) + " values of Q and " +
                   std::to_string(args.out_dim) + " of V has no GPU kernel; there is one for multiples of 8 up to " +
                   std::to_string(kExpandedHeadDim) + " and " + std::to_string(kExpandedValueDim));
}

void require_head_dim(int head_dim) {
  if (is_supported_head_dim(head_dim)) return;
  std::string known;
  for (const int each : kHeadDims) known += (known.empty() ? "" : ", ") + std::to_string(each);
  throw InputError("attention with head_dim " + std::to_string(head_dim) + " has no GPU kernel; there is one for " +
                   known);
}

void require_supported(const PrefillAttention& args) {
  require_dtype("a KV cache", args.cache.dtype,
                {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::int8, Dtype::kivi4, Dtype::kivi2});
  require_activation("Q", args.q.dtype);
  require_activation("the output of attention", args.out.dtype);
  if (args.cache.block_size < 1 || args.cache.block_size > 256)
    throw InputError("KV blocks of " + std::to_string(args.cache.block_size) +
                     " tokens have no GPU kernel; there is one for 1 to 256");
  require_aligned("Q", args.q.data);
  require_aligned_cache(args.cache);
  require_aligned("the output of attention", args.out.data);
  if (args.q_stride % kWide != 0)
    throw InputError("the tokens of Q must lie multiples of " + std::to_string(kWide) +
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
  if (is_kivi(args.cache.dtype)) return start_kivi(stream, args);
  require_reachable(args.cache);
  const bool in_pairs = prefill_arithmetic(args.q.dtype, args.cache.dtype) == PrefillArithmetic::half_pairs;
  if (is_expanded(args.cache)) {
    require_expanded(args);
    return in_pairs ? start_expanded<HalfPair>(stream, args) : start_expanded<float>(stream, args);
  }
  require_head_dim(args.cache.head_dim);
  if (in_pairs)
    start_head_dim<HalfPair>(stream, args);
  else
    start_head_dim<float>(stream, args);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD

#include "kernels/gpu/kv/kivi_prefill.hip.hpp"

#include "kernels/gpu/launch/dispatch.hpp"
#include "kernels/gpu/launch/kivi.hpp"
#include "kernels/gpu/launch/prefill_grid.hpp"
#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

template <typename Word, int kBits>
void start_head_dim(Stream& stream, const PrefillAttention& args) {
  with_count<32, 64, 96, 128, 256>(args.cache.head_dim, [&]<int kHeadDim>() {
    with_wave_size(stream, [&]<int kWave>() {
      launch(stream, prefill_grid(args, PrefillTiles<Word, kHeadDim>::kTile.rows),
             kivi_prefill_kernel<kWave, Word, kBits, kHeadDim>, args);
    });
  });
}

}  // namespace

void start_kivi(Stream& stream, const PrefillAttention& args) {
  const KvCacheView& cache = args.cache;
  require_kivi_cache(cache);
  if (!is_supported_head_dim(cache.head_dim))
    throw InputError("attention over a KIVI cache with head_dim " + std::to_string(cache.head_dim) +
                     " has no GPU kernel; there is one for 32, 64, 96, 128, 256");
  if (cache.extras.as<KiviOnDevice>().new_dtype != args.q.dtype)
    throw InputError("attention over a KIVI cache takes Q, K and V in one format");
  with_count<4, 2>(bits(cache.dtype), [&]<int kBits>() {
    if (prefill_arithmetic(args.q.dtype, cache.dtype) == PrefillArithmetic::half_pairs)
      start_head_dim<HalfPair, kBits>(stream, args);
    else
      start_head_dim<float, kBits>(stream, args);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD

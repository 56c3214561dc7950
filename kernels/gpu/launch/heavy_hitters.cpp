#include "kernels/gpu/kv/heavy_hitters.hip.hpp"

#include "kernels/gpu/launch/cache_type.hpp"
#include "kernels/gpu/launch/dispatch.hpp"
#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

void start(Stream& stream, const AttentionScores& args) {
  const KvCacheView& cache = args.cache;
  require_activation("the query of attention scores", args.q.dtype);
  require_aligned("the query of attention scores", args.q.data);
  require_aligned("the K cache", cache.k);
  require_multiple("attention scores", "values of a head", cache.head_dim, 128 / bits(cache.dtype));
  require_multiple("attention scores", "query heads", args.num_heads, cache.num_kv_heads);
  require_multiple("attention scores", "values between queries", static_cast<int>(args.q_stride),
                   128 / bits(args.q.dtype));
  if (cache.head_dim > kScoresMaxHeadDim)
    throw InputError("attention scores of head_dim " + std::to_string(cache.head_dim) +
                     " have no GPU kernel; there is one up to " + std::to_string(kScoresMaxHeadDim));
  const bool is_scaled = cache.dtype == Dtype::fp8_e4m3 || cache.dtype == Dtype::fp8_e5m2;
  const AttentionScoresLaunch described{args, score_lanes(cache.dtype, cache.head_dim),
                                        args.scale * (is_scaled ? cache.extras.as<Fp8KvScales>().k : 1.0F)};
  with_cached_type(cache.dtype, [&]<typename Cache>() {
    with_wave_size(stream, [&]<int kWave>() {
      with_count<1, 2, 4>(scored_heads(args.num_heads / cache.num_kv_heads, args.max_context_len), [&]<int kHeads>() {
        launch(stream, {.x = cache.num_kv_heads, .y = args.num_seqs, .threads = kScoresThreads},
               attention_scores_kernel<kWave, Cache, kHeads>, described);
      });
    });
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD

#include "kernels/gpu/kv/sinks.hip.hpp"

#include "kernels/gpu/launch/cache_type.hpp"
#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

void start(Stream& stream, const KeepSinkKeys& args) {
  require_activation("attention sinks", args.kv.dtype);
  require_aligned("attention sinks", args.kv.data);
  require_multiple("attention sinks", "values", args.width, kWide);
  require_multiple("attention sinks", "values between tokens", static_cast<int>(args.stride), kWide);
  const int threads = kv_cache_threads(1, args.width / 2);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.num_tokens, .threads = threads}, keep_sink_keys_kernel<kWave>, args);
  });
}

void start(Stream& stream, const ShiftSinkKeys& args) {
  const KvCacheView& cache = args.cache;
  require_multiple("attention sinks", "values of a head", cache.head_dim, kWide);
  require_aligned_cache(cache);
  if (args.rotary_dim % 2 != 0 || args.rotary_dim > cache.head_dim)
    throw InputError("attention sinks of which " + std::to_string(args.rotary_dim) + " values of heads of " +
                     std::to_string(cache.head_dim) +
                     " are rotated have no GPU kernel; the part must be even and "
                     "within the head");
  const ShiftSinkKeysLaunch described{args, cache.dtype == Dtype::int8 ? int8_head_lanes(cache) : 1};
  with_cached_type(cache.dtype, [&]<typename Stored>() {
    with_wave_size(stream, [&]<int kWave>() {
      launch(stream, {.x = args.num_tokens, .threads = kv_cache_threads(cache.num_kv_heads, cache.head_dim)},
             shift_sink_keys_kernel<kWave, Stored>, described);
    });
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD

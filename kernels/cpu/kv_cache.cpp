// The kernels that write K and V: rotation, and where the rows of a token go.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/for_each_token.hpp"
#include "kernels/cpu/latent_kernels.hpp"
#include "kernels/cpu/preconditions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/kv_cache.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include "kernels/cpu/kv/formats-inl.hpp"
#include "kernels/cpu/rotation-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

// Where K and V of one head of a token go; negative when they are not written.
std::int64_t written_slot(const RopeAndCacheArgs& args, int token, int head) {
  const std::ptrdiff_t index = std::ptrdiff_t{token} * args.cache.num_kv_heads + head;
  return args.head_slots != nullptr ? args.head_slots[index] : args.slot_mapping[token];
}

template <typename T>
void store_token(const RopeAndCacheArgs& args, int token_index, const float* k, const float* v) {
  const KvCacheView& cache = args.cache;
  const StoredRows<T> rows(cache);
  for (int head = 0; head < cache.num_kv_heads; ++head) {
    const std::int64_t slot = written_slot(args, token_index, head);
    if (slot < 0) continue;
    const std::int64_t first = (slot / cache.block_size * cache.num_kv_heads + head) * cache.block_size;
    const std::int64_t row = first + slot % cache.block_size, element = row * cache.head_dim;
    rows.store_k(k + head * cache.head_dim, cache.head_dim, row, static_cast<T*>(cache.k) + element);
    rows.store_v(v + head * cache.head_dim, cache.head_dim, row, static_cast<T*>(cache.v) + element);
  }
}

template <typename T>
void rope_and_cache_token(const RopeAndCacheArgs& args, int token) {
  const KvCacheView& cache = args.cache;
  const int head_dim = cache.head_dim, kv_width = cache.num_kv_heads * head_dim;
  float* q = args.qkv + std::ptrdiff_t{token} * (args.num_heads * head_dim + 2 * kv_width);
  float* k = q + args.num_heads * head_dim;
  if constexpr (!kLiesInRows<T>) T::take_unrotated(args, token, k, k + kv_width);
  if (args.cos_sin != nullptr) {
    const int turned = args.turned_values();
    const float* cos_sin = args.cos_sin + std::ptrdiff_t{args.positions[token]} * turned;
    const auto turn = args.neighbours ? rotate_neighbours : rotate;
    for (float* head = q; head != k + kv_width; head += head_dim) turn(head, cos_sin, turned / 2);
  }
  if constexpr (kLiesInRows<T>)
    store_token<T>(args, token, k, k + kv_width);
  else
    T::take_rotated(args, k, k + kv_width);
}

template <typename T>
void latent_token(const LatentRopeArgs& args, int token) {
  const LatentSizes& sizes = args.sizes;
  const KvCacheView& cache = args.cache;
  const int rope = sizes.qk_rope_head_dim;
  const float* cos_sin = args.cos_sin + std::ptrdiff_t{args.positions[token]} * rope;
  const auto turn = args.neighbours ? rotate_neighbours : rotate;
  float* const latent = args.latents + token * args.latent_stride;
  float* head = args.q + token * args.q_stride + sizes.qk_nope_head_dim;
  for (int i = 0; i < sizes.num_heads; ++i, head += sizes.qk_head_dim()) turn(head, cos_sin, rope / 2);
  turn(latent + sizes.kv_lora_rank, cos_sin, rope / 2);
  const std::int64_t slot = args.slot_mapping[token];
  if (slot >= 0)
    StoredRows<T>(cache).store_k(latent, sizes.latent_width(), slot,
                                 static_cast<T*>(cache.k) + slot * sizes.latent_width());
}

}  // namespace

void latent_rope_and_cache_impl(ThreadPool& threads, const LatentRopeArgs& args) {
  const std::int64_t heads = args.sizes.num_heads;
  for_each_token(
      threads, args.num_tokens, heads * args.sizes.qk_head_dim() + args.sizes.latent_width(),
      [&](int token) { with_row_type(args.cache.dtype, [&]<typename T>(const T*) { latent_token<T>(args, token); }); });
}

void rope_and_cache_impl(ThreadPool& threads, const RopeAndCacheArgs& args) {
  const int heads = args.num_heads + 2 * args.cache.num_kv_heads;
  for_each_token(threads, args.num_tokens, std::int64_t{heads} * args.cache.head_dim, [&](int token) {
    with_cached_type(args.cache.dtype, [&]<typename T>(const T*) { rope_and_cache_token<T>(args, token); });
  });
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(rope_and_cache_impl);
HWY_EXPORT(latent_rope_and_cache_impl);

void rope_and_cache(ThreadPool& threads, const RopeAndCacheArgs& args) {
  require_kv_cache(args.cache, "rope_and_cache");
  HWY_DYNAMIC_DISPATCH(rope_and_cache_impl)(threads, args);
}
void latent_rope_and_cache(ThreadPool& threads, const LatentRopeArgs& args) {
  require_kv_cache(args.cache, "latent_rope_and_cache");
  require(lies_in_rows(args.cache.dtype) && args.cache.num_kv_heads == 1 &&
              args.cache.head_dim == args.sizes.latent_width(),
          "latent_rope_and_cache", "the cache is not of these latents");
  HWY_DYNAMIC_DISPATCH(latent_rope_and_cache_impl)(threads, args);
}

}  // namespace dculab::kernels::cpu
#endif

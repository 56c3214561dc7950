// The kernels that write K and V: rotation, and every format that a token's K and V are stored in one by one.
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
#include "kernels/cpu/cached_values-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

// The pairs (i, i + half) of one head, turned by the angles of one position.
void rotate(float* head, const float* cos_sin, int half) {
  for (int i = 0; i < half; i += kLanes) {
    const int count = half - i;
    const Vector cosine = load_first(cos_sin + i, count), sine = load_first(cos_sin + half + i, count);
    const Vector a = load_first(head + i, count), b = load_first(head + half + i, count);
    store_first(hn::Sub(hn::Mul(a, cosine), hn::Mul(b, sine)), head + i, count);
    store_first(hn::MulAdd(b, cosine, hn::Mul(a, sine)), head + half + i, count);
  }
}

// The pairs (2 i, 2 i + 1).
void rotate_neighbours(float* head, const float* cos_sin, int half) {
  int i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    const Vector cosine = load(cos_sin + i), sine = load(cos_sin + half + i);
    Vector a, b;
    hn::LoadInterleaved2(F32(), head + 2 * i, a, b);
    hn::StoreInterleaved2(hn::Sub(hn::Mul(a, cosine), hn::Mul(b, sine)), hn::MulAdd(b, cosine, hn::Mul(a, sine)), F32(),
                          head + 2 * i);
  }
  for (; i < half; ++i) {
    const float a = head[2 * i], b = head[2 * i + 1];
    head[2 * i] = a * cos_sin[i] - b * cos_sin[half + i];
    head[2 * i + 1] = std::fma(b, cos_sin[i], a * cos_sin[half + i]);
  }
}

template <typename T>
void copy(const float* from, int count, T* to) {
  for (int i = 0; i < count; i += kLanes) store_first(load_first(from + i, count - i), to + i, count - i);
}

void round_to_f16(float* values, int count) {
  F16 rounded[kLanes];
  for (int i = 0; i < count; i += kLanes) {
    store(load_first(values + i, count - i), rounded);
    store_first(load(rounded), values + i, count - i);
  }
}

template <typename T>
void store_divided(const float* values, int count, float scale, T* to) {
  const Vector divisor = hn::Set(F32(), scale);
  for (int i = 0; i < count; i += kLanes)
    store_first(hn::Div(load_first(values + i, count - i), divisor), to + i, count - i);
}

// One head of one token. `fixed_scale` is FP8's; int8 chooses its own and stores it in `scale`.
template <typename T>
void store_head(const float* values, int head_dim, float fixed_scale, T* to, float* scale) {
  if constexpr (kIsFp8<T>) {
    store_divided(values, head_dim, fixed_scale, to);
  } else if constexpr (std::is_same_v<T, Int8>) {
    Vector largest = hn::Zero(F32());
    for (int i = 0; i < head_dim; i += kLanes)
      largest = hn::Max(largest, hn::Abs(load_first(values + i, head_dim - i)));
    *scale = hn::GetLane(hn::MaxOfLanes(F32(), largest)) / 127.0F;
    if (*scale > 0)
      store_divided(values, head_dim, *scale, to);
    else
      std::fill_n(to, head_dim, Int8{0});
  } else {
    copy(values, head_dim, to);
  }
}

// Where K and V of one head of a token go; negative when they are not written.
std::int64_t written_slot(const RopeAndCacheArgs& args, int token, int head) {
  const std::ptrdiff_t index = std::ptrdiff_t{token} * args.cache.num_kv_heads + head;
  return args.head_slots != nullptr ? args.head_slots[index] : args.slot_mapping[token];
}

template <typename T>
void store_token(const RopeAndCacheArgs& args, int token_index, const float* k, const float* v) {
  const KvCacheView& cache = args.cache;
  for (int head = 0; head < cache.num_kv_heads; ++head) {
    const std::int64_t slot = written_slot(args, token_index, head);
    if (slot < 0) continue;
    const std::int64_t row = (slot / cache.block_size * cache.num_kv_heads + head) * cache.block_size;
    const std::int64_t token = row + slot % cache.block_size, element = token * cache.head_dim;
    const bool is_int8 = std::is_same_v<T, Int8>;
    store_head(k + head * cache.head_dim, cache.head_dim, cache.k_scale, static_cast<T*>(cache.k) + element,
               is_int8 ? cache.k_scales + token : nullptr);
    store_head(v + head * cache.head_dim, cache.head_dim, cache.v_scale, static_cast<T*>(cache.v) + element,
               is_int8 ? cache.v_scales + token : nullptr);
  }
}

template <typename T>
void rope_and_cache_token(const RopeAndCacheArgs& args, int token) {
  const KvCacheView& cache = args.cache;
  const int head_dim = cache.head_dim, kv_width = cache.num_kv_heads * head_dim;
  float* q = args.qkv + std::ptrdiff_t{token} * (args.num_heads * head_dim + 2 * kv_width);
  float* k = q + args.num_heads * head_dim;
  if (args.cos_sin != nullptr) {
    const int turned = args.turned_values();
    const float* cos_sin = args.cos_sin + std::ptrdiff_t{args.positions[token]} * turned;
    const auto turn = args.neighbours ? rotate_neighbours : rotate;
    for (float* head = q; head != k + kv_width; head += head_dim) turn(head, cos_sin, turned / 2);
  }
  if constexpr (kIsKivi<T>)
    round_to_f16(k, 2 * kv_width);
  else
    store_token<T>(args, token, k, k + kv_width);
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
    store_head(latent, sizes.latent_width(), cache.k_scale, static_cast<T*>(cache.k) + slot * sizes.latent_width(),
               std::is_same_v<T, Int8> ? cache.k_scales + slot : nullptr);
}

}  // namespace

void latent_rope_and_cache_impl(ThreadPool& threads, const LatentRopeArgs& args) {
  const std::int64_t heads = args.sizes.num_heads;
  for_each_token(threads, args.num_tokens, heads * args.sizes.qk_head_dim() + args.sizes.latent_width(),
                 [&](int token) {
                   with_cached_type(args.cache.dtype, [&]<typename T>(const T*) {
                     if constexpr (!kIsKivi<T>) latent_token<T>(args, token);
                   });
                 });
}

void rope_and_cache_impl(ThreadPool& threads, const RopeAndCacheArgs& args) {
  const int heads = args.num_heads + 2 * args.cache.num_kv_heads;
  for_each_token(threads, args.num_tokens, std::int64_t{heads} * args.cache.head_dim, [&](int token) {
    with_cached_type(args.cache.dtype, [&]<typename T>(const T*) { rope_and_cache_token<T>(args, token); });
  });
}

void keep_residual_impl(ThreadPool& threads, const KiviArgs& args) {
  const KvCacheView& cache = args.cache;
  const KvResidual& residual = cache.residual;
  for (int seq = 0; seq < args.num_seqs; ++seq) {
    const int end = args.query_start_loc[seq + 1];
    const int tokens = std::min(end - args.query_start_loc[seq], residual.tokens);
    const std::ptrdiff_t first_row = std::ptrdiff_t{args.new_kv.residual_rows[seq]} * cache.num_kv_heads;
    for_each_token(threads, tokens, std::int64_t{2} * cache.num_kv_heads * cache.head_dim, [&](int token) {
      const int place = (args.context_lens[seq] - tokens + token) % residual.tokens;
      const std::ptrdiff_t from = (end - tokens + token) * args.new_kv.stride;
      for (int head = 0; head < cache.num_kv_heads; ++head) {
        const std::ptrdiff_t to = ((first_row + head) * residual.tokens + place) * cache.head_dim;
        const std::ptrdiff_t source = from + head * cache.head_dim;
        copy(args.new_kv.k + source, cache.head_dim, reinterpret_cast<F16*>(residual.k + to));
        copy(args.new_kv.v + source, cache.head_dim, reinterpret_cast<F16*>(residual.v + to));
      }
    });
  }
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(rope_and_cache_impl);
HWY_EXPORT(keep_residual_impl);
HWY_EXPORT(latent_rope_and_cache_impl);

void rope_and_cache(ThreadPool& threads, const RopeAndCacheArgs& args) {
  require_kv_cache(args.cache, "rope_and_cache");
  HWY_DYNAMIC_DISPATCH(rope_and_cache_impl)(threads, args);
}
void latent_rope_and_cache(ThreadPool& threads, const LatentRopeArgs& args) {
  require_kv_cache(args.cache, "latent_rope_and_cache");
  require(
      !is_kivi(args.cache.dtype) && args.cache.num_kv_heads == 1 && args.cache.head_dim == args.sizes.latent_width(),
      "latent_rope_and_cache", "the cache is not of these latents");
  HWY_DYNAMIC_DISPATCH(latent_rope_and_cache_impl)(threads, args);
}
void keep_residual(ThreadPool& threads, const KiviArgs& args) {
  require(is_kivi(args.cache.dtype), "keep_residual", "the KV cache is neither kivi4 nor kivi2");
  require_kv_cache(args.cache, "keep_residual");
  HWY_DYNAMIC_DISPATCH(keep_residual_impl)(threads, args);
}

}  // namespace dculab::kernels::cpu
#endif

// Multi-head latent attention beside attention itself.
#include <cstddef>

#include "kernels/reference/cached_value.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "kernels/reference/stored_value.hpp"

namespace dculab::kernels::reference {
namespace {

// Turns pairs of values of a part of a head, or those of neighbours, by the angles of one position.
void turn(float* part, const float* cos_sin, int count, bool neighbours) {
  const int half = count / 2;
  for (int i = 0; i < half; ++i) {
    float& first = part[neighbours ? 2 * i : i];
    float& second = part[neighbours ? 2 * i + 1 : half + i];
    const double a = first, b = second, cosine = cos_sin[i], sine = cos_sin[half + i];
    first = static_cast<float>(a * cosine - b * sine);
    second = static_cast<float>(b * cosine + a * sine);
  }
}

// Row `row` of a head's part of kv_b_proj, element `column`.
double weight_at(const AbsorbArgs& args, int head, int row, int column) {
  const std::ptrdiff_t index = std::ptrdiff_t{head} * args.sizes.expanded_head_dim() + row;
  return load_value(args.kv_b_proj.data, args.kv_b_proj.dtype,
                    static_cast<std::size_t>(index * args.sizes.kv_lora_rank + column));
}

}  // namespace

void latent_rope_and_cache(const LatentRopeArgs& args) {
  const LatentSizes& sizes = args.sizes;
  const int rope = sizes.qk_rope_head_dim;
  for (int token = 0; token < args.num_tokens; ++token) {
    const float* cos_sin = args.cos_sin + std::ptrdiff_t{args.positions[token]} * rope;
    float* q = args.q + token * args.q_stride;
    float* latent = args.latents + token * args.latent_stride;
    for (int head = 0; head < sizes.num_heads; ++head)
      turn(q + head * sizes.qk_head_dim() + sizes.qk_nope_head_dim, cos_sin, rope, args.neighbours);
    turn(latent + sizes.kv_lora_rank, cos_sin, rope, args.neighbours);
    const std::int64_t slot = args.slot_mapping[token];
    if (slot >= 0) store_cached(args.cache, KvTensor::k, slot, 0, latent);
  }
}

void gather_latents(const GatherLatentsArgs& args) {
  for (int token = args.begin; token < args.end; ++token)
    for (int d = 0; d < args.sizes.latent_width(); ++d) {
      const std::int64_t slot = slot_of(args.cache, args.block_table, token);
      const double value = load_cached(args.cache, KvTensor::k, cache_index(args.cache, KvTensor::k, slot, 0, d));
      const std::ptrdiff_t row = token - args.begin;
      float& to = d < args.sizes.kv_lora_rank
                      ? args.latents[row * args.sizes.kv_lora_rank + d]
                      : args.keys[row * args.sizes.qk_rope_head_dim + d - args.sizes.kv_lora_rank];
      to = static_cast<float>(value);
    }
}

void store_expanded(const StoreExpandedArgs& args) {
  const LatentSizes& sizes = args.sizes;
  for (int token = 0; token < args.num_tokens; ++token)
    for (int head = 0; head < sizes.num_heads; ++head) {
      const std::ptrdiff_t row = std::ptrdiff_t{token} * sizes.num_heads + head;
      const float* from = args.expanded + row * sizes.expanded_head_dim();
      const std::int64_t slot = args.first_slot + token;
      const auto at = [&](KvTensor tensor, int d) -> float& {
        float* values = static_cast<float*>(tensor == KvTensor::k ? args.cache.k : args.cache.v);
        return values[cache_index(args.cache, tensor, slot, head, d)];
      };
      for (int d = 0; d < sizes.qk_head_dim(); ++d)
        at(KvTensor::k, d) =
            d < sizes.qk_nope_head_dim
                ? from[d]
                : args.keys[std::ptrdiff_t{token} * sizes.qk_rope_head_dim + d - sizes.qk_nope_head_dim];
      for (int d = 0; d < sizes.v_head_dim; ++d) at(KvTensor::v, d) = from[sizes.qk_nope_head_dim + d];
    }
}

void absorb_k(const AbsorbArgs& args) {
  const LatentSizes& sizes = args.sizes;
  for (int token = 0; token < args.num_tokens; ++token)
    for (int head = 0; head < sizes.num_heads; ++head) {
      const float* x = args.x + token * args.x_stride + head * sizes.qk_head_dim();
      float* y = args.y + (std::ptrdiff_t{token} * sizes.num_heads + head) * sizes.latent_width();
      for (int d = 0; d < sizes.kv_lora_rank; ++d) {
        double sum = 0;
        for (int row = 0; row < sizes.qk_nope_head_dim; ++row) sum += x[row] * weight_at(args, head, row, d);
        y[d] = static_cast<float>(sum);
      }
      for (int d = 0; d < sizes.qk_rope_head_dim; ++d) y[sizes.kv_lora_rank + d] = x[sizes.qk_nope_head_dim + d];
    }
}

void absorb_v(const AbsorbArgs& args) {
  const LatentSizes& sizes = args.sizes;
  for (int token = 0; token < args.num_tokens; ++token)
    for (int head = 0; head < sizes.num_heads; ++head) {
      const float* x = args.x + token * args.x_stride + head * sizes.kv_lora_rank;
      float* y = args.y + (std::ptrdiff_t{token} * sizes.num_heads + head) * sizes.v_head_dim;
      for (int row = 0; row < sizes.v_head_dim; ++row) {
        double sum = 0;
        for (int d = 0; d < sizes.kv_lora_rank; ++d)
          sum += x[d] * weight_at(args, head, sizes.qk_nope_head_dim + row, d);
        y[row] = static_cast<float>(sum);
      }
    }
}

}  // namespace dculab::kernels::reference

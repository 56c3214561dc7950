#include "kernels/reference/reference_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/reference/stored_value.hpp"

namespace dculab::kernels::reference {
namespace {

// Index of element `d` of a token in the cache.
std::size_t cache_index(const KvCacheView& cache, std::int64_t slot, int kv_head, int d) {
  const std::int64_t block = slot / cache.block_size;
  const std::int64_t offset = slot % cache.block_size;
  const std::int64_t row = (block * cache.num_kv_heads + kv_head) * cache.block_size + offset;
  return static_cast<std::size_t>(row * cache.head_dim + d);
}

// Turns the pairs (i, i + head_dim / 2) of one head by the angles of one position.
void rotate(float* head, const float* cos_sin, int head_dim) {
  const int half = head_dim / 2;
  for (int i = 0; i < half; ++i) {
    const double cosine = cos_sin[i], sine = cos_sin[half + i];
    const double a = head[i], b = head[half + i];
    head[i] = static_cast<float>(a * cosine - b * sine);
    head[half + i] = static_cast<float>(b * cosine + a * sine);
  }
}

// Attention of one query head of one token over the first `length` tokens of its sequence.
void attend(const PagedAttentionArgs& args, const float* q, const std::int32_t* block_table, int kv_head, int length,
            float* out) {
  const KvCacheView& cache = args.cache;
  const auto slot = [&](int token) {
    return std::int64_t{block_table[token / cache.block_size]} * cache.block_size + token % cache.block_size;
  };
  std::vector<double> weights(static_cast<std::size_t>(length));
  for (int token = 0; token < length; ++token) {
    double score = 0;
    for (int d = 0; d < cache.head_dim; ++d) {
      score += q[d] * load_value(cache.k, cache.dtype, cache_index(cache, slot(token), kv_head, d));
    }
    weights[static_cast<std::size_t>(token)] = score * args.scale;
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - largest);
  for (int d = 0; d < cache.head_dim; ++d) {
    double sum = 0;
    for (int token = 0; token < length; ++token) {
      sum += weights[static_cast<std::size_t>(token)] *
             load_value(cache.v, cache.dtype, cache_index(cache, slot(token), kv_head, d));
    }
    out[d] = static_cast<float>(sum / total);
  }
}

}  // namespace

void matmul(const MatmulArgs& args) {
  std::size_t out = 0;
  for (int row = 0; row < args.m; ++row) {
    const float* x = args.x + std::ptrdiff_t{row} * args.k;
    for (int i = 0; i < args.num_weights; ++i) {
      const WeightView& weight = args.weights[static_cast<std::size_t>(i)];
      for (std::size_t n = 0; n < static_cast<std::size_t>(weight.rows); ++n) {
        double sum = 0;
        for (std::size_t k = 0; k < static_cast<std::size_t>(args.k); ++k) {
          sum += x[k] * load_value(weight.data, weight.dtype, n * static_cast<std::size_t>(args.k) + k);
        }
        args.y[out++] = static_cast<float>(sum);
      }
    }
  }
}

void rms_norm(const RmsNormArgs& args) {
  const auto width = static_cast<std::size_t>(args.width);
  for (std::size_t token = 0; token < static_cast<std::size_t>(args.num_tokens); ++token) {
    float* residual = args.residual + token * width;
    if (args.x != nullptr) {
      for (std::size_t i = 0; i < width; ++i) residual[i] += args.x[token * width + i];
    }
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) squares += double{residual[i]} * residual[i];
    const double scale = 1.0 / std::sqrt(squares / args.width + args.epsilon);
    for (std::size_t i = 0; i < width; ++i) {
      args.out[token * width + i] =
          static_cast<float>(residual[i] * scale * load_value(args.weight.data, args.weight.dtype, i));
    }
  }
}

void embedding(const EmbeddingArgs& args) {
  const auto width = static_cast<std::size_t>(args.width);
  for (std::size_t token = 0; token < static_cast<std::size_t>(args.num_tokens); ++token) {
    const std::size_t row = static_cast<std::size_t>(args.token_ids[token]) * width;
    for (std::size_t i = 0; i < width; ++i) {
      args.out[token * width + i] = static_cast<float>(load_value(args.table.data, args.table.dtype, row + i));
    }
  }
}

void silu_mul(const SiluMulArgs& args) {
  const auto width = static_cast<std::size_t>(args.width);
  for (std::size_t token = 0; token < static_cast<std::size_t>(args.num_tokens); ++token) {
    const float* gate = args.gate_up + token * 2 * width;
    const float* up = gate + width;
    for (std::size_t i = 0; i < width; ++i) {
      args.out[token * width + i] = static_cast<float>(gate[i] / (1.0 + std::exp(-double{gate[i]})) * up[i]);
    }
  }
}

void rope_and_cache(const RopeAndCacheArgs& args) {
  const KvCacheView& cache = args.cache;
  const int width = (args.num_heads + 2 * cache.num_kv_heads) * cache.head_dim;
  for (int token = 0; token < args.num_tokens; ++token) {
    const float* cos_sin = args.cos_sin + std::ptrdiff_t{args.positions[token]} * cache.head_dim;
    float* q = args.qkv + std::ptrdiff_t{token} * width;
    float* k = q + args.num_heads * cache.head_dim;
    const float* v = k + cache.num_kv_heads * cache.head_dim;
    for (int head = 0; head < args.num_heads + cache.num_kv_heads; ++head) {
      rotate(q + head * cache.head_dim, cos_sin, cache.head_dim);
    }
    const std::int64_t slot = args.slot_mapping[token];
    if (slot < 0) continue;
    for (int i = 0; i < cache.num_kv_heads * cache.head_dim; ++i) {
      const std::size_t index = cache_index(cache, slot, i / cache.head_dim, i % cache.head_dim);
      store_value(cache.k, cache.dtype, index, k[i]);
      store_value(cache.v, cache.dtype, index, v[i]);
    }
  }
}

void paged_attention(const PagedAttentionArgs& args) {
  const int head_dim = args.cache.head_dim;
  const int group_size = args.num_heads / args.cache.num_kv_heads;
  for (int seq = 0; seq < args.num_seqs; ++seq) {
    const std::int32_t* block_table = args.block_tables + std::ptrdiff_t{seq} * args.max_blocks_per_seq;
    for (int token = args.query_start_loc[seq]; token < args.query_start_loc[seq + 1]; ++token) {
      const int length = args.context_lens[seq] - (args.query_start_loc[seq + 1] - 1 - token);
      for (int head = 0; head < args.num_heads; ++head) {
        attend(args, args.q + token * args.q_stride + head * head_dim, block_table, head / group_size, length,
               args.out + (std::ptrdiff_t{token} * args.num_heads + head) * head_dim);
      }
    }
  }
}

}  // namespace dculab::kernels::reference

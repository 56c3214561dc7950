// Attention as its definition reads: all scores of one query, their softmax, the weighted sum of V.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/reference/cached_value.hpp"
#include "kernels/reference/reference_kernels.hpp"

namespace dculab::kernels::reference {
namespace {

struct Query {
  const float* q;  // [head_dim]
  int head, kv_head;
  int position;  // in its sequence
};

double score(const PagedAttentionArgs& args, const Query& query, std::int64_t slot, int key_position) {
  double product = 0;
  for (int d = 0; d < args.cache.head_dim; ++d) {
    product += query.q[d] * load_cached(args.cache, KvTensor::k, cache_index(args.cache, slot, query.kv_head, d));
  }
  const double slope = args.alibi_slopes == nullptr ? 0.0 : args.alibi_slopes[query.head];
  return product * args.scale + slope * (key_position - query.position);
}

// out: [head_dim]
void attend(const PagedAttentionArgs& args, const Query& query, const std::int32_t* block_table, float* out) {
  const KvCacheView& cache = args.cache;
  const int first = args.sliding_window == 0 ? 0 : std::max(0, query.position + 1 - args.sliding_window);
  std::vector<double> weights;
  for (int token = first; token <= query.position; ++token) {
    weights.push_back(score(args, query, slot_of(cache, block_table, token), token));
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - largest);
  for (int d = 0; d < cache.head_dim; ++d) {
    double sum = 0;
    for (int token = first; token <= query.position; ++token) {
      const std::size_t index = cache_index(cache, slot_of(cache, block_table, token), query.kv_head, d);
      sum += weights[static_cast<std::size_t>(token - first)] * load_cached(cache, KvTensor::v, index);
    }
    out[d] = static_cast<float>(sum / total);
  }
}

}  // namespace

void paged_attention(const PagedAttentionArgs& args) {
  const int head_dim = args.cache.head_dim;
  const int group_size = args.num_heads / args.cache.num_kv_heads;
  for (int seq = 0; seq < args.num_seqs; ++seq) {
    const std::int32_t* block_table = args.block_tables + std::ptrdiff_t{seq} * args.max_blocks_per_seq;
    for (int token = args.query_start_loc[seq]; token < args.query_start_loc[seq + 1]; ++token) {
      const int position = args.context_lens[seq] - (args.query_start_loc[seq + 1] - token);
      for (int head = 0; head < args.num_heads; ++head) {
        const float* q = args.q + token * args.q_stride + head * head_dim;
        attend(args, {q, head, head / group_size, position}, block_table,
               args.out + (std::ptrdiff_t{token} * args.num_heads + head) * head_dim);
      }
    }
  }
}

}  // namespace dculab::kernels::reference

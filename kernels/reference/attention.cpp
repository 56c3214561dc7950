// Attention as its definition reads: all scores of one query, their softmax, the weighted sum of V.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/reference/kivi.hpp"
#include "kernels/reference/reference_kernels.hpp"

namespace dculab::kernels::reference {
namespace {

struct Query {
  const float* q;  // [head_dim]
  int head, kv_head;
  int position;  // in its sequence
  KiviSequence sequence;
};

// Element `d` of the K or V that the query sees of a token.
double load_seen(const PagedAttentionArgs& args, const Query& query, KvTensor tensor, int token, int d) {
  const KvCacheView& cache = args.cache;
  const std::int32_t* table = args.block_tables + std::ptrdiff_t{query.sequence.index} * args.max_blocks_per_seq;
  if (!is_kivi(cache.dtype))
    return load_cached(cache, tensor, cache_index(cache, tensor, slot_of(cache, table, token), query.kv_head, d));
  if (token < kivi_quantized_tokens(query.position + 1, cache.residual.tokens))
    return load_quantized(cache, table, tensor, query.kv_head, token, d);
  return load_full(cache, args.new_kv, query.sequence, tensor, query.kv_head, token, d);
}

double score(const PagedAttentionArgs& args, const Query& query, int token) {
  double product = 0;
  for (int d = 0; d < args.cache.head_dim; ++d) product += query.q[d] * load_seen(args, query, KvTensor::k, token, d);
  const double slope = args.alibi_slopes == nullptr ? 0.0 : args.alibi_slopes[query.head];
  const double cap = args.logit_soft_cap;
  const double scaled = product * args.scale;
  return (cap > 0 ? cap * std::tanh(scaled / cap) : scaled) + slope * (token - query.position);
}

// The first token that the query sees.
int first_visible(const PagedAttentionArgs& args, const Query& query) {
  return args.sliding_window == 0 ? 0 : std::max(0, query.position + 1 - args.sliding_window);
}

// Softmax weights of the tokens from first_visible to the query's own.
std::vector<double> softmax_weights(const PagedAttentionArgs& args, const Query& query) {
  std::vector<double> weights;
  for (int token = first_visible(args, query); token <= query.position; ++token)
    weights.push_back(score(args, query, token));
  const double largest = *std::max_element(weights.begin(), weights.end());
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= total;
  return weights;
}

// out: [value_width]
void attend(const PagedAttentionArgs& args, const Query& query, float* out) {
  const int first = first_visible(args, query);
  const std::vector<double> weights = softmax_weights(args, query);
  for (int d = 0; d < args.cache.value_width(); ++d) {
    double sum = 0;
    for (int token = first; token <= query.position; ++token)
      sum += weights[static_cast<std::size_t>(token - first)] * load_seen(args, query, KvTensor::v, token, d);
    out[d] = static_cast<float>(sum);
  }
}

// body(query, sequence, token) for every head of every new token.
template <typename Body>
void for_each_query(const PagedAttentionArgs& args, Body&& body) {
  const int group_size = args.num_heads / args.cache.num_kv_heads;
  for (int seq = 0; seq < args.num_seqs; ++seq) {
    const int first = args.query_start_loc[seq], end = args.query_start_loc[seq + 1];
    const KiviSequence sequence{seq, args.context_lens[seq] - (end - first), first};
    for (int token = first; token < end; ++token) {
      const int position = sequence.computed + token - first;
      for (int head = 0; head < args.num_heads; ++head) {
        const float* q = args.q + token * args.q_stride + head * args.cache.head_dim;
        body(Query{q, head, head / group_size, position, sequence}, seq, token);
      }
    }
  }
}

}  // namespace

void paged_attention(const PagedAttentionArgs& args) {
  for_each_query(args, [&](const Query& query, int, int token) {
    attend(args, query, args.out + token * args.out_row() + std::ptrdiff_t{query.head} * args.cache.value_width());
  });
}

void attention_scores(const AttentionScoresArgs& args) {
  for_each_query(args.attention, [&](const Query& query, int seq, int) {
    const std::vector<double> weights = softmax_weights(args.attention, query);
    float* sums = args.sums[seq] + std::ptrdiff_t{query.kv_head} * args.sums_stride;
    sums += first_visible(args.attention, query);
    for (const double weight : weights) {
      *sums = static_cast<float>(*sums + weight);
      ++sums;
    }
  });
}

}  // namespace dculab::kernels::reference

// Attention as its definition reads: all scores of one query, their softmax, the weighted sum of V.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/reference/kv/kivi.hpp"
#include "kernels/reference/kv/kvquant.hpp"
#include "kernels/reference/reference_kernels.hpp"

namespace dculab::kernels::reference {
namespace {

struct Query {
  const float* q = nullptr;  // [head_dim]
  int head = 0, kv_head = 0;
  int position = 0;  // in its sequence
  KiviSequence sequence;
  std::vector<int> seen{};  // places in the sequence's blocks, the last its own
  int first_position = 0;   // of the first place in `seen`; the others follow it
};

// Element `d` of the K or V that the query sees of a token.
double load_seen(const PagedAttentionArgs& args, const Query& query, KvTensor tensor, int token, int d) {
  const KvCacheView& cache = args.cache;
  const std::int32_t* table = args.block_tables + std::ptrdiff_t{query.sequence.index} * args.max_blocks_per_seq;
  if (is_kvquant(cache.dtype)) return load_kvquant(cache, table, tensor, query.kv_head, token, d);
  if (!is_kivi(cache.dtype))
    return load_cached(cache, tensor, cache_index(cache, tensor, slot_of(cache, table, token), query.kv_head, d));
  if (token < kivi_quantized_tokens(query.position + 1, cache.extras.as<KiviExtras>().residual.tokens))
    return load_quantized(cache, table, tensor, query.kv_head, token, d);
  return load_full(cache, query.sequence, tensor, query.kv_head, token, d);
}

// Of the key at a place, which has that position.
double score(const PagedAttentionArgs& args, const Query& query, int token, int position) {
  double product = 0;
  for (int d = 0; d < args.cache.head_dim; ++d) product += query.q[d] * load_seen(args, query, KvTensor::k, token, d);
  const double slope = args.alibi_slopes == nullptr ? 0.0 : args.alibi_slopes[query.head];
  const double cap = args.logit_soft_cap;
  const double scaled = product * args.scale;
  return (cap > 0 ? cap * std::tanh(scaled / cap) : scaled) + slope * (position - query.position);
}

// Finds the places that a query sees, and its position: those before the tree, which may be empty, and its path.
void look_back(const PagedAttentionArgs& args, int token, Query& query) {
  const int seq = query.sequence.index, end = args.query_start_loc[seq + 1];
  const int tree_size = args.tree.size_of(seq), place = args.context_lens[seq] - (end - token);
  const int tree_begin = tree_size == 0 ? place + 1 : args.context_lens[seq] - tree_size;
  for (int seen = 0; seen < tree_begin; ++seen) query.seen.push_back(seen);
  for (int bit = 0; bit < tree_size; ++bit)
    if (args.tree.masks[token] >> bit & 1U) query.seen.push_back(tree_begin + bit);
  query.position = static_cast<int>(query.seen.size()) - 1;
  if (args.sliding_window == 0) return;
  query.first_position = std::max(0, query.position + 1 - args.sliding_window);
  query.seen.erase(query.seen.begin(), query.seen.begin() + query.first_position);
}

// Softmax weights of the places that the query sees.
std::vector<double> softmax_weights(const PagedAttentionArgs& args, const Query& query) {
  std::vector<double> weights;
  int position = query.first_position;
  for (const int token : query.seen) weights.push_back(score(args, query, token, position++));
  const double largest = *std::max_element(weights.begin(), weights.end());
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= total;
  return weights;
}

// out: [value_width]
void attend(const PagedAttentionArgs& args, const Query& query, float* out) {
  const std::vector<double> weights = softmax_weights(args, query);
  for (int d = 0; d < args.cache.value_width(); ++d) {
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i)
      sum += weights[i] * load_seen(args, query, KvTensor::v, query.seen[i], d);
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
      Query query{.sequence = sequence};
      look_back(args, token, query);
      for (query.head = 0; query.head < args.num_heads; ++query.head) {
        query.q = args.q + token * args.q_stride + query.head * args.cache.head_dim;
        query.kv_head = query.head / group_size;
        body(query, seq, token);
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
    sums += query.first_position;
    for (const double weight : weights) {
      *sums = static_cast<float>(*sums + weight);
      ++sums;
    }
  });
}

}  // namespace dculab::kernels::reference

// What each cached token gets of the new tokens' attention, added up for each KV head: a second pass over K.
//
// One task per sequence and KV head, new tokens one after the other, so the sums have the same bits for any number of
// threads, any batch, and any way to cut the tokens into steps.
#include "kernels/cpu/kv/kv_kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/preconditions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/kv/heavy_hitters.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include "kernels/cpu/exponential-inl.hpp"
#include "kernels/cpu/kv/formats-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

int padded(int count) { return (count + kLanes - 1) / kLanes * kLanes; }

// q * k over head_dim values.
template <typename T>
float dot(const float* q, const T* k, int head_dim) {
  Vector products = hn::Zero(F32());
  for (int d = 0; d < head_dim; d += kLanes) {
    products = hn::MulAdd(load_first(q + d, head_dim - d), load_first(k + d, head_dim - d), products);
  }
  return sum(products);
}

// scores[count] become softmax weights. What lies beyond up to a whole vector is overwritten.
void softmax(float* scores, int count) {
  std::fill(scores + count, scores + padded(count), std::numeric_limits<float>::lowest());
  Vector largest = load(scores);
  for (int i = kLanes; i < count; i += kLanes) largest = hn::Max(largest, load(scores + i));
  const Vector most = hn::MaxOfLanes(F32(), largest);
  Vector totals = hn::Zero(F32());
  for (int i = 0; i < count; i += kLanes) {
    const Vector weight = exponential(hn::Sub(load(scores + i), most));
    store(weight, scores + i);
    totals = hn::Add(totals, weight);
  }
  const Vector scale = hn::Set(F32(), 1.0F / sum(totals));
  for (int i = 0; i < count; i += kLanes) store(hn::Mul(load(scores + i), scale), scores + i);
}

class AttentionScores {
 public:
  AttentionScores(const AttentionScoresArgs& args, Workspace& workspace, int workers)
      : args_(args), attention_(args.attention), group_size_(attention_.num_heads / attention_.cache.num_kv_heads) {
    stride_ = padded(*std::max_element(attention_.context_lens, attention_.context_lens + attention_.num_seqs));
    scores_per_worker_ = static_cast<std::size_t>(stride_) * static_cast<std::size_t>(group_size_);
    scores_ = workspace.floats(scores_per_worker_ * static_cast<std::size_t>(workers));
  }

  void run(ThreadPool& threads) const {
    const int kv_heads = attention_.cache.num_kv_heads;
    threads.parallel_for(attention_.num_seqs * kv_heads, [&](int task, int worker) {
      with_row_type(attention_.cache.dtype,
                    [&]<typename T>(const T*) { add_sequence<T>(task / kv_heads, task % kv_heads, worker); });
    });
  }

 private:
  template <typename T>
  void add_sequence(int seq, int kv_head, int worker) const {
    const int begin = attention_.query_start_loc[seq], end = attention_.query_start_loc[seq + 1];
    float* scores = scores_ + scores_per_worker_ * static_cast<std::size_t>(worker);
    float* sums = args_.sums[seq] + std::ptrdiff_t{kv_head} * args_.sums_stride;
    for (int token = begin; token < end; ++token) {
      const int visible = attention_.context_lens[seq] - (end - token) + 1;
      score<T>(seq, kv_head, token, visible, scores);
      for (int head = 0; head < group_size_; ++head) {
        float* weights = scores + std::ptrdiff_t{head} * stride_;
        softmax(weights, visible);
        for (int i = 0; i < visible; ++i) sums[i] += weights[i];
      }
    }
  }

  // scores: [group_size, stride] of one new token, for the first `visible` tokens of its sequence.
  template <typename T>
  void score(int seq, int kv_head, int token, int visible, float* scores) const {
    const KvCacheView& cache = attention_.cache;
    const StoredRows<T> rows(cache);
    const std::int32_t* block_table = attention_.block_tables + std::ptrdiff_t{seq} * attention_.max_blocks_per_seq;
    const float* q = attention_.q + token * attention_.q_stride;
    q += std::ptrdiff_t{kv_head} * group_size_ * cache.head_dim;
    for (int first = 0; first < visible; first += cache.block_size) {
      const std::ptrdiff_t row =
          std::ptrdiff_t{block_table[first / cache.block_size]} * cache.heads_in_block() + kv_head;
      std::ptrdiff_t cached = row * cache.block_size;
      const T* k = static_cast<const T*>(cache.k) + cached * cache.head_dim;
      const int last = std::min(visible, first + cache.block_size);
      for (int i = first; i < last; ++i, ++cached, k += cache.head_dim) {
        const float scale = attention_.scale * rows.k_scale(cached);
        for (int head = 0; head < group_size_; ++head) {
          const float product = dot(q + std::ptrdiff_t{head} * cache.head_dim, k, cache.head_dim);
          scores[std::ptrdiff_t{head} * stride_ + i] = product * scale;
        }
      }
    }
  }

  const AttentionScoresArgs& args_;
  const PagedAttentionArgs& attention_;
  int group_size_;
  int stride_ = 0;
  std::size_t scores_per_worker_ = 0;
  float* scores_ = nullptr;  // [workers, group_size, stride]
};

}  // namespace

void attention_scores_impl(ThreadPool& threads, Workspace& workspace, const AttentionScoresArgs& args) {
  AttentionScores(args, workspace, threads.num_threads()).run(threads);
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(attention_scores_impl);

void attention_scores(ThreadPool& threads, Workspace& workspace, const AttentionScoresArgs& args) {
  require_rows(args.attention.cache, "attention_scores");
  require_kv_cache(args.attention.cache, "attention_scores");
  require(args.attention.alibi_slopes == nullptr, "attention_scores", "ALiBi is not supported");
  require(args.attention.sliding_window == 0, "attention_scores", "a sliding window is not supported");
  require(args.attention.tree.sizes == nullptr, "attention_scores", "trees are not supported");
  if (args.attention.num_seqs == 0) return;
  HWY_DYNAMIC_DISPATCH(attention_scores_impl)(threads, workspace, args);
}

}  // namespace dculab::kernels::cpu
#endif

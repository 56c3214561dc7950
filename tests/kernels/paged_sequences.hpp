// Sequences of random Q, K and V in a paged cache with shuffled blocks; what no token owns is NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/kernels/tensors.hpp"

namespace dculab::kernels {

struct AttentionShape {
  int num_heads = 4, num_kv_heads = 2, head_dim = 64;
  Dtype dtype = Dtype::f16;
};

// New tokens of a sequence that has `context` tokens when the call is made.
struct NewTokens {
  int sequence = 0;
  int context = 0;
  int tokens = 1;
};

// Q, K and V of whole sequences: the same for any block size and any way to cut the work.
class PagedSequences {
 public:
  PagedSequences(AttentionShape shape, std::vector<int> lengths) : shape_(shape), lengths_(std::move(lengths)) {
    TensorSource source(11);
    const auto kv_width = static_cast<std::size_t>(shape.num_kv_heads * shape.head_dim);
    const auto q_width = static_cast<std::size_t>(shape.num_heads * shape.head_dim);
    for (const int length : lengths_) {
      q_.push_back(source.floats(static_cast<std::size_t>(length) * q_width));
      k_.push_back(source.floats(static_cast<std::size_t>(length) * kv_width));
      v_.push_back(source.floats(static_cast<std::size_t>(length) * kv_width));
    }
    page(16);
  }

  // Lays the cache out anew.
  void page(int block_size) {
    block_size_ = block_size;
    int num_blocks = 3;
    for (const int length : lengths_) num_blocks += (length + block_size - 1) / block_size;
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(num_blocks));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(static_cast<unsigned>(block_size)));
    num_blocks_ = num_blocks;
    const auto count = static_cast<std::size_t>(num_blocks * block_size * shape_.num_kv_heads * shape_.head_dim);
    k_cache_.resize(count * static_cast<std::size_t>(bits(shape_.dtype) / 8));
    v_cache_.resize(k_cache_.size());
    for (std::size_t i = 0; i < count; ++i) {
      reference::store_value(k_cache_.data(), shape_.dtype, i, NAN);
      reference::store_value(v_cache_.data(), shape_.dtype, i, NAN);
    }
    tables_.clear();
    for (std::size_t s = 0; s < lengths_.size(); ++s) {
      std::vector<std::int32_t> table;
      for (int token = 0; token < lengths_[s]; ++token) {
        if (token % block_size == 0) {
          table.push_back(blocks.back());
          blocks.pop_back();
        }
        write(s, token, table.back());
      }
      tables_.push_back(table);
    }
  }

  // out of the new tokens, [sum of tokens, num_heads * head_dim].
  template <typename Kernel>
  std::vector<float> run(const std::vector<NewTokens>& calls, Kernel&& kernel) const {
    const int width = shape_.num_heads * shape_.head_dim, stride = width + 24;  // Q inside a wider buffer
    std::vector<float> q;
    std::vector<std::int32_t> starts{0}, contexts, tables;
    std::size_t longest = 1;
    for (const std::vector<std::int32_t>& table : tables_) longest = std::max(longest, table.size());
    for (const NewTokens& call : calls) {
      const auto sequence = static_cast<std::size_t>(call.sequence);
      for (int token = call.context - call.tokens; token < call.context; ++token) {
        const float* row = q_[sequence].data() + std::ptrdiff_t{token} * width;
        q.insert(q.end(), row, row + width);
        q.resize(q.size() + 24, NAN);
      }
      starts.push_back(starts.back() + call.tokens);
      contexts.push_back(call.context);
      const std::size_t blocks = static_cast<std::size_t>((call.context + block_size_ - 1) / block_size_);
      tables.insert(tables.end(), tables_[sequence].begin(),
                    tables_[sequence].begin() + static_cast<std::ptrdiff_t>(blocks));
      tables.resize(longest * contexts.size(), -1);
    }
    std::vector<float> out(static_cast<std::size_t>(starts.back() * width), NAN);
    PagedAttentionArgs args;
    args.q = q.data(), args.q_stride = stride;
    args.cache = {const_cast<std::byte*>(k_cache_.data()),
                  const_cast<std::byte*>(v_cache_.data()),
                  shape_.dtype,
                  num_blocks_,
                  shape_.num_kv_heads,
                  block_size_,
                  shape_.head_dim};
    args.block_tables = tables.data(), args.max_blocks_per_seq = static_cast<int>(longest);
    args.query_start_loc = starts.data(), args.context_lens = contexts.data();
    args.out = out.data(), args.num_seqs = static_cast<int>(calls.size()), args.num_heads = shape_.num_heads;
    args.scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_dim));
    kernel(args);
    return out;
  }

  [[nodiscard]] std::vector<float> on_cpu(const std::vector<NewTokens>& calls, int num_threads = 2) const {
    cpu::ThreadPool threads(num_threads);
    cpu::Workspace workspace;
    return run(calls, [&](const PagedAttentionArgs& args) { cpu::paged_attention(threads, workspace, args); });
  }

 private:
  void write(std::size_t sequence, int token, std::int32_t block) {
    for (int head = 0; head < shape_.num_kv_heads; ++head) {
      for (int d = 0; d < shape_.head_dim; ++d) {
        const auto from = static_cast<std::size_t>((token * shape_.num_kv_heads + head) * shape_.head_dim + d);
        const auto to = static_cast<std::size_t>(
            ((block * shape_.num_kv_heads + head) * block_size_ + token % block_size_) * shape_.head_dim + d);
        reference::store_value(k_cache_.data(), shape_.dtype, to, k_[sequence][from]);
        reference::store_value(v_cache_.data(), shape_.dtype, to, v_[sequence][from]);
      }
    }
  }

  AttentionShape shape_;
  std::vector<int> lengths_;
  int block_size_ = 16, num_blocks_ = 0;
  std::vector<std::vector<float>> q_, k_, v_;  // [sequence][token, head, head_dim]
  std::vector<std::byte> k_cache_, v_cache_;
  std::vector<std::vector<std::int32_t>> tables_;
};

}  // namespace dculab::kernels

// Sequences of random K and V in a paged cache with shuffled blocks, a query token or several each; what no token owns
// is NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "kernels/alibi.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {

struct DecodeShape {
  Dtype cache = Dtype::f16, query = Dtype::f16, out = Dtype::f32;
  int head_dim = 64, num_kv_heads = 2, group_size = 1, block_size = 16;
  std::vector<int> contexts{40};
  bool has_alibi = false;
  int sliding_window = 0;
  float logit_soft_cap = 0;
  std::vector<int> tokens{};  // new ones of each sequence; empty: one
  std::vector<int> trees{};   // sizes of their trees; empty: none has one
};

struct DecodeCut {
  int heads_per_workgroup = 0, partition_tokens = 0;
};

class DecodeCase {
 public:
  explicit DecodeCase(DecodeShape shape) : shape_(std::move(shape)) {
    TensorSource source(13);
    num_heads_ = shape_.num_kv_heads * shape_.group_size;
    q_stride_ = (num_heads_ + 2) * shape_.head_dim;  // Q inside a wider buffer
    for (std::size_t seq = 0; seq < shape_.contexts.size(); ++seq) add_query_tokens(source, seq);
    q_ = source.stored(static_cast<std::size_t>(starts_.back()) * static_cast<std::size_t>(q_stride_), shape_.query);
    for (const int context : shape_.contexts) {
      longest_ = std::max(longest_, context);
      num_blocks_ += blocks_of(context);
    }
    num_blocks_ += 2;
    if (bits(shape_.cache) == 8) k_scale_ = 0.5F, v_scale_ = 0.25F;
    if (shape_.has_alibi) slopes_ = alibi_slopes(num_heads_);
    fill_cache(source);
    expect();
  }

  [[nodiscard]] const DecodeShape& shape() const { return shape_; }
  [[nodiscard]] int num_heads() const { return num_heads_; }
  [[nodiscard]] int num_blocks() const { return num_blocks_; }
  [[nodiscard]] const std::vector<std::byte>& k() const { return k_; }
  [[nodiscard]] const std::vector<float>& expected() const { return expected_; }
  // Which bytes of `k` and of `v` hold a token that is attended to.
  [[nodiscard]] const std::vector<char>& attended() const { return attended_; }

  // Arguments for tensors on a device; `body(args)` while they are there. Returns what was written to `out`.
  template <typename Body>
  std::vector<float> with_args(Device& device, const DecodeCut& cut, Body body) const {
    const DeviceTensor q(device, q_), tables(device, tables_, OperandRole::block_table);
    const DeviceTensor k(device, k_, OperandRole::kv_read), v(device, v_, OperandRole::kv_read);
    const DeviceTensor contexts(device, shape_.contexts), slopes(device, slopes_);
    const int num_seqs = static_cast<int>(shape_.contexts.size());
    const DeviceTensor out(device, bytes_of(shape_.out, expected_.size()));
    const DeviceTensor workspace(
        device, sizeof(float) * static_cast<std::size_t>(paged_attention_workspace(
                                    starts_.back(), num_heads_, shape_.head_dim, longest_, cut.partition_tokens)));
    const DeviceTensor starts(device, starts_), masks(device, masks_), trees(device, shape_.trees);
    PagedAttention args{.q = {q.as(), shape_.query},
                        .q_stride = q_stride_,
                        .cache = view(k.as(), v.as()),
                        .block_tables = tables.as<std::int32_t>(),
                        .max_blocks_per_seq = blocks_of(longest_),
                        .context_lens = contexts.as<std::int32_t>(),
                        .max_context_len = longest_,
                        .out = {out.as(), shape_.out},
                        .num_seqs = num_seqs,
                        .num_heads = num_heads_,
                        .scale = scale()};
    if (shape_.has_alibi) args.alibi_slopes = slopes.as<float>();
    args.sliding_window = shape_.sliding_window;
    args.score_cap = ScoreCap(shape_.logit_soft_cap);
    args.heads_per_workgroup = cut.heads_per_workgroup;
    args.partition_tokens = cut.partition_tokens;
    args.workspace = workspace.as<float>();
    if (!shape_.tokens.empty())
      args.queries = {.start_loc = starts.as<std::int32_t>(),
                      .tree_masks = masks.as<std::uint64_t>(),
                      .tree_sizes = shape_.trees.empty() ? nullptr : trees.as<std::int32_t>(),
                      .num_tokens = starts_.back(),
                      .max_tokens_per_seq = std::ranges::max(shape_.tokens)};
    body(args);
    return out.read_numbers(shape_.out);
  }

  [[nodiscard]] std::vector<float> run(Device& device, const DecodeCut& cut = {}) const {
    return with_args(device, cut, [&](const PagedAttention& args) { device.paged_attention(args); });
  }

  // How far a result may be from the reference. A score has an error of
  //  * an f32 query that is rounded to halves (relative 2^-11, 1 / sqrt(3) of it on average): over products of size
  //    |q k| = 1 that add up like a random walk and are divided by sqrt(head_dim): 2^-11 / sqrt(3), four times that
  //    at the worst;
  //  * f32 arithmetic: sums of head_dim products, ALiBi's product, the exponential: 2^-18 for scores below 2^6.
  // An error e of the scores changes the weights by a factor of at most 1 + 2 e, the result by 2 e max|v|.
  [[nodiscard]] double tolerance(double expected) const {
    const bool is_rounded = shape_.query == Dtype::f32 && shape_.cache != Dtype::bf16;
    const double score_error = (is_rounded ? 4 * 0x1p-11 / std::sqrt(3.0) : 0.0) + 0x1p-18;
    return rounding(shape_.out) * std::abs(expected) + 2 * score_error * largest_v_;
  }

  [[nodiscard]] int blocks_of(int tokens) const { return (tokens + shape_.block_size - 1) / shape_.block_size; }

 private:
  // The masks of a random tree's last places: each sees what its parent, an earlier place, sees.
  void add_query_tokens(TensorSource& source, std::size_t seq) {
    const int tokens = shape_.tokens.empty() ? 1 : shape_.tokens[seq];
    starts_.push_back(starts_.back() + tokens);
    std::vector<std::uint64_t> rows;
    for (int place = 0; place < (shape_.trees.empty() ? 0 : shape_.trees[seq]); ++place) {
      const auto parent = static_cast<std::size_t>(place == 0 ? 0 : source.integer(0, place - 1));
      rows.push_back((place == 0 ? 0 : rows[parent]) | std::uint64_t{1} << place);
    }
    rows.resize(std::max(rows.size(), static_cast<std::size_t>(tokens)));
    masks_.insert(masks_.end(), rows.end() - tokens, rows.end());
  }

  [[nodiscard]] float scale() const { return 1.0F / std::sqrt(static_cast<float>(shape_.head_dim)); }

  [[nodiscard]] KvCacheView view(void* k, void* v) const {
    return {.k = k,
            .v = v,
            .dtype = shape_.cache,
            .num_blocks = num_blocks_,
            .num_kv_heads = shape_.num_kv_heads,
            .block_size = shape_.block_size,
            .head_dim = shape_.head_dim,
            .extras = Fp8KvScales{k_scale_, v_scale_}};
  }

  void fill_cache(TensorSource& source) {
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(num_blocks_));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(5));
    const auto count =
        static_cast<std::size_t>(num_blocks_ * shape_.num_kv_heads * shape_.block_size * shape_.head_dim);
    k_.assign(bytes_of(shape_.cache, count), std::byte{0xFF});
    v_ = k_;
    attended_.assign(k_.size(), 0);
    for (const int context : shape_.contexts) {
      std::vector<std::int32_t> table(static_cast<std::size_t>(blocks_of(longest_)), -1);
      for (int token = 0; token < context; ++token) {
        auto& block = table[static_cast<std::size_t>(token / shape_.block_size)];
        if (block < 0) block = blocks.back(), blocks.pop_back();
        const bool is_attended = shape_.sliding_window == 0 || token >= context - shape_.sliding_window;
        for (int head = 0; head < shape_.num_kv_heads; ++head) write(source, token, head, block, is_attended);
      }
      tables_.insert(tables_.end(), table.begin(), table.end());
    }
  }

  void write(TensorSource& source, int token, int head, std::int32_t block, bool is_attended) {
    const int slot = (block * shape_.num_kv_heads + head) * shape_.block_size + token % shape_.block_size;
    const auto bytes = bytes_of(shape_.cache, static_cast<std::size_t>(shape_.head_dim));
    const auto begin = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(slot) * bytes);
    for (auto* cache : {&k_, &v_}) {
      const float spread = 1 / (cache == &k_ ? k_scale_ : v_scale_);
      const auto row = source.stored(static_cast<std::size_t>(shape_.head_dim), shape_.cache, spread);
      std::copy(row.begin(), row.end(), cache->begin() + begin);
    }
    const auto values = widen(std::span(v_).subspan(static_cast<std::size_t>(begin), bytes), shape_.cache);
    for (const float value : values) largest_v_ = std::max(largest_v_, std::abs(double{value} * v_scale_));
    if (is_attended) std::fill_n(attended_.begin() + begin, bytes, char{1});
  }

  void expect() {
    const auto q = widen(q_, shape_.query);
    expected_.assign(static_cast<std::size_t>(starts_.back() * num_heads_ * shape_.head_dim), NAN);
    PagedAttentionArgs args;
    args.q = q.data(), args.q_stride = q_stride_;
    args.cache = view(k_.data(), v_.data());
    args.block_tables = tables_.data(), args.max_blocks_per_seq = blocks_of(longest_);
    args.query_start_loc = starts_.data(), args.context_lens = shape_.contexts.data();
    args.out = expected_.data(), args.num_seqs = static_cast<int>(shape_.contexts.size());
    args.num_heads = num_heads_, args.scale = scale(), args.sliding_window = shape_.sliding_window;
    args.logit_soft_cap = shape_.logit_soft_cap;
    if (shape_.has_alibi) args.alibi_slopes = slopes_.data();
    if (!shape_.trees.empty()) args.tree = {masks_.data(), shape_.trees.data()};
    reference::paged_attention(args);
  }

  DecodeShape shape_;
  int num_heads_ = 0, q_stride_ = 0, longest_ = 0, num_blocks_ = 0;
  float k_scale_ = 1, v_scale_ = 1;
  double largest_v_ = 0;
  std::vector<std::byte> q_, k_, v_;
  std::vector<std::int32_t> tables_, starts_{0};
  std::vector<std::uint64_t> masks_;  // [tokens], 0 without a tree
  std::vector<float> slopes_, expected_;
  std::vector<char> attended_;  // [bytes of k_]
};

}  // namespace dculab::kernels::gpu

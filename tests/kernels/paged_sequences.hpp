// Sequences of random Q, K and V in a paged cache with shuffled blocks; what no token owns is NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/kv/table.hpp"
#include "kernels/alibi.hpp"
#include "kernels/kv/kivi.hpp"
#include "kernels/kv/kvquant.hpp"
#include "kernels/number_format.hpp"
#include "kernels/reference/cached_value.hpp"
#include "kernels/reference/kv/kivi.hpp"
#include "kernels/reference/kv/kvquant.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels {

enum class Alibi : std::uint8_t { off, on };
// Everything a CPU's KV cache can be stored in.
constexpr Dtype kCachedDtypes[] = {Dtype::f32,      Dtype::f16,  Dtype::bf16,  Dtype::fp8_e4m3,
                                   Dtype::fp8_e5m2, Dtype::int8, Dtype::kivi4, Dtype::kivi2};

struct AttentionShape {
  int num_heads = 4, num_kv_heads = 2, head_dim = 64;
  Dtype dtype = Dtype::f16;
  int sliding_window = 0;
  Alibi alibi = Alibi::off;
  int residual_tokens = 64;  // kivi4, kivi2
  float soft_cap = 0;
};

// New tokens of a sequence that has `context` tokens when the call is made.
struct NewTokens {
  int sequence = 0;
  int context = 0;
  int tokens = 1;
};

// The memory of one layer's KV cache, every byte 0xFF: NaN as a value and as a scale.
class CacheMemory {
 public:
  std::vector<std::uint16_t> k, v;  // two bytes each, for alignment
  std::vector<float> k_scales, v_scales;
  std::vector<float> calibration;  // kvquant, and what follows
  std::vector<KvQuantOutlier> k_outliers, v_outliers;
  std::vector<KvQuantScale> kvquant_scales;
  KvCacheView view;

  CacheMemory() = default;
  CacheMemory(Dtype dtype, int num_blocks, int num_kv_heads, int block_size, int head_dim) {
    const auto tokens = static_cast<std::size_t>(num_blocks * num_kv_heads * block_size);
    const auto values = static_cast<double>(tokens) * head_dim;
    const Bytes bytes = is_kivi(dtype) ? kv_storage(dtype, values, head_dim) : storage(dtype, values);
    k.assign(static_cast<std::size_t>(bytes.value() / 2.0 + 0.5), 0xFFFF);
    v = k;
    k_scales.assign(dtype == Dtype::int8 ? tokens : 0, NAN);
    v_scales = k_scales;
    view = {.k = k.data(),
            .v = v.data(),
            .dtype = dtype,
            .num_blocks = num_blocks,
            .num_kv_heads = num_kv_heads,
            .block_size = block_size,
            .head_dim = head_dim,
            .extras = Fp8KvScales{0.75F, 1.25F}};
    if (dtype == Dtype::int8) view.extras = Int8KvScales{k_scales.data(), v_scales.data()};
    if (is_kvquant(dtype)) add_kvquant(num_blocks * block_size, num_kv_heads * head_dim);
  }

 private:
  // Levels that are not even, bounds that are, ranges that differ from channel to channel.
  void add_kvquant(int slots, int width) {
    const int levels = 1 << bits(view.dtype);
    for (const float power : {1.3F, 0.8F})
      for (int level = 0; level < levels; ++level) {
        const float even = 2 * static_cast<float>(level) / static_cast<float>(levels - 1) - 1;
        calibration.push_back(std::copysign(std::pow(std::abs(even), power), even));
      }
    for (const float least : {-0.9F, -0.8F})
      for (int bound = 0; bound + 1 < levels; ++bound)
        calibration.push_back(least - 2 * least * static_cast<float>(bound) / static_cast<float>(levels - 2));
    for (int channel = 0; channel < width; ++channel)
      calibration.push_back(0.01F * static_cast<float>(channel % 7) - 0.02F);
    for (int channel = 0; channel < width; ++channel)
      calibration.push_back(channel % 31 == 5 ? 0.0F : 0.5F + 0.02F * static_cast<float>(channel % 11));
    const std::size_t outliers = static_cast<std::size_t>(slots * kvquant_outliers(width));
    k_outliers.assign(outliers, {0xFFFF, 0xFFFF});
    v_outliers = k_outliers;
    kvquant_scales.assign(static_cast<std::size_t>(slots), {0xFFFF, 0xFFFF});
    view.extras = KvQuantExtras{.calibration = calibration.data(),
                                .k_outliers = k_outliers.data(),
                                .v_outliers = v_outliers.data(),
                                .v_scales = kvquant_scales.data(),
                                .width = width};
  }
};

// Q, K and V of whole sequences: the same for any block size and any way to cut the work.
class PagedSequences {
 public:
  PagedSequences(AttentionShape shape, std::vector<int> lengths)
      : shape_(shape), lengths_(std::move(lengths)), slopes_(alibi_slopes(shape.num_heads)) {
    TensorSource source(11);
    const auto q_width = static_cast<std::size_t>(shape.num_heads * shape.head_dim);
    for (const int length : lengths_) {
      const auto kv_values = static_cast<std::size_t>(length * kv_width());
      q_.push_back(source.floats(static_cast<std::size_t>(length) * q_width));
      k_.push_back(source.floats(kv_values));
      v_.push_back(source.floats(kv_values));
      for (std::vector<float>* values : {&k_.back(), &v_.back()})
        for (float& value : *values)
          if (is_kivi(shape.dtype)) value = f32_from_f16(f16_from_f32(value));
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
    cache_ = CacheMemory(shape_.dtype, num_blocks, shape_.num_kv_heads, block_size, shape_.head_dim);
    tables_.clear();
    for (std::size_t s = 0; s < lengths_.size(); ++s) {
      const auto count = static_cast<std::size_t>((lengths_[s] + block_size - 1) / block_size);
      tables_.emplace_back(blocks.end() - static_cast<std::ptrdiff_t>(count), blocks.end());
      blocks.resize(blocks.size() - count);
      write(s);
    }
  }

  // out of the new tokens, [sum of tokens, num_heads * head_dim].
  template <typename Kernel>
  std::vector<float> run(const std::vector<NewTokens>& calls, Kernel&& kernel) const {
    const int width = shape_.num_heads * shape_.head_dim, stride = width + 24;  // Q inside a wider buffer
    Call call(cache_.view, shape_, calls.size());
    for (const NewTokens& part : calls) {
      const auto sequence = static_cast<std::size_t>(part.sequence);
      for (int token = part.context - part.tokens; token < part.context; ++token) {
        append(call.q, q_[sequence], token, width, 24);
        append(call.k, k_[sequence], token, kv_width(), 8);
        append(call.v, v_[sequence], token, kv_width(), 8);
      }
      keep_residual(call, part);
      call.starts.push_back(call.starts.back() + part.tokens);
      call.contexts.push_back(part.context);
    }
    std::size_t longest = 1;
    for (const std::vector<std::int32_t>& table : tables_) longest = std::max(longest, table.size());
    for (const NewTokens& part : calls) {
      const std::vector<std::int32_t>& table = tables_[static_cast<std::size_t>(part.sequence)];
      const auto blocks = static_cast<std::ptrdiff_t>((part.context + block_size_ - 1) / block_size_);
      call.tables.insert(call.tables.end(), table.begin(), table.begin() + blocks);
      call.tables.resize((call.tables.size() + longest - 1) / longest * longest, -1);
    }
    std::vector<float> out(static_cast<std::size_t>(call.starts.back() * width), NAN);
    PagedAttentionArgs args;
    args.q = call.q.data(), args.q_stride = stride;
    args.cache = call.cache;
    if (is_kivi(shape_.dtype))
      args.cache.extras = KiviExtras{{call.residual_k.data(), call.residual_v.data(), shape_.residual_tokens},
                                     {call.k.data(), call.v.data(), kv_width() + 8, call.rows.data()}};
    args.block_tables = call.tables.data(), args.max_blocks_per_seq = static_cast<int>(longest);
    args.query_start_loc = call.starts.data(), args.context_lens = call.contexts.data();
    args.out = out.data(), args.num_seqs = static_cast<int>(calls.size()), args.num_heads = shape_.num_heads;
    args.scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_dim));
    args.sliding_window = shape_.sliding_window, args.logit_soft_cap = shape_.soft_cap;
    if (shape_.alibi == Alibi::on) args.alibi_slopes = slopes_.data();
    kernel(args);
    return out;
  }

  [[nodiscard]] std::vector<float> on_cpu(const std::vector<NewTokens>& calls, int num_threads = 2) const {
    cpu::ThreadPool threads(num_threads);
    return on_cpu(calls, threads);
  }

  [[nodiscard]] std::vector<float> on_cpu(const std::vector<NewTokens>& calls, cpu::ThreadPool& threads) const {
    cpu::Workspace workspace;
    return run(calls, [&](const PagedAttentionArgs& args) { cpu::paged_attention(threads, workspace, args); });
  }

  // Makes NaN of the cached K and V of the first `tokens` tokens of a sequence.
  void forget(int sequence, int tokens) {
    const auto s = static_cast<std::size_t>(sequence);
    const auto values = static_cast<std::ptrdiff_t>(tokens) * shape_.num_kv_heads * shape_.head_dim;
    std::fill_n(k_[s].begin(), values, NAN);
    std::fill_n(v_[s].begin(), values, NAN);
    write(s);
  }

 private:
  // The arrays of one call. Residuals are in another order than the sequences.
  struct Call {
    std::vector<float> q, k, v;
    std::vector<std::int32_t> starts{0}, contexts, tables, rows;
    std::vector<std::uint16_t> residual_k, residual_v;
    KvCacheView cache;

    Call(const KvCacheView& view, const AttentionShape& shape, std::size_t num_seqs)
        : rows(num_seqs),
          residual_k(is_kivi(shape.dtype) ? num_seqs * static_cast<std::size_t>(shape.num_kv_heads *
                                                                                shape.residual_tokens * shape.head_dim)
                                          : 0,
                     0xFFFF),
          residual_v(residual_k),
          cache(view) {
      std::iota(rows.rbegin(), rows.rend(), 0);
    }
  };

  [[nodiscard]] int kv_width() const { return shape_.num_kv_heads * shape_.head_dim; }

  // One token's row of [tokens, width], and `gap` NaN.
  static void append(std::vector<float>& to, const std::vector<float>& from, int token, int width, std::size_t gap) {
    const float* row = from.data() + std::ptrdiff_t{token} * width;
    to.insert(to.end(), row, row + width);
    to.resize(to.size() + gap, NAN);
  }

  // What a residual holds before the new tokens of `part`.
  void keep_residual(Call& call, const NewTokens& part) const {
    if (!is_kivi(shape_.dtype)) return;
    const auto sequence = static_cast<std::size_t>(part.sequence);
    const int computed = part.context - part.tokens, tokens = shape_.residual_tokens;
    const std::ptrdiff_t row = call.rows[call.contexts.size()];
    for (int token = std::max(0, computed - tokens); token < computed; ++token)
      for (int i = 0; i < kv_width(); ++i) {
        const std::ptrdiff_t head = row * shape_.num_kv_heads + i / shape_.head_dim;
        const auto to =
            static_cast<std::size_t>((head * tokens + token % tokens) * shape_.head_dim + i % shape_.head_dim);
        const auto from = static_cast<std::size_t>(token * kv_width() + i);
        call.residual_k[to] = f16_from_f32(k_[sequence][from]);
        call.residual_v[to] = f16_from_f32(v_[sequence][from]);
      }
  }

  void write(std::size_t sequence) {
    const std::int32_t row = 0, starts[] = {0, lengths_[sequence]};
    KvCacheView cache = cache_.view;
    cache.extras = KiviExtras{{}, {k_[sequence].data(), v_[sequence].data(), kv_width(), &row}};
    if (is_kivi(shape_.dtype))
      return reference::quantize_groups({.cache = cache,
                                         .block_tables = tables_[sequence].data(),
                                         .max_blocks_per_seq = static_cast<int>(tables_[sequence].size()),
                                         .query_start_loc = starts,
                                         .context_lens = &lengths_[sequence],
                                         .num_seqs = 1});
    if (is_kvquant(shape_.dtype))
      for (int token = 0; token < lengths_[sequence]; ++token) {
        const auto from = static_cast<std::size_t>(token * kv_width());
        reference::store_kvquant(cache_.view, reference::slot_of(cache_.view, tables_[sequence].data(), token),
                                 &k_[sequence][from], &v_[sequence][from]);
      }
    for (int token = 0; token < lengths_[sequence] && lies_in_rows(shape_.dtype); ++token)
      for (int head = 0; head < shape_.num_kv_heads; ++head) {
        const std::int64_t slot = reference::slot_of(cache_.view, tables_[sequence].data(), token);
        const auto from = static_cast<std::size_t>((token * shape_.num_kv_heads + head) * shape_.head_dim);
        reference::store_cached(cache_.view, reference::KvTensor::k, slot, head, &k_[sequence][from]);
        reference::store_cached(cache_.view, reference::KvTensor::v, slot, head, &v_[sequence][from]);
      }
  }

  AttentionShape shape_;
  std::vector<int> lengths_;
  int block_size_ = 16;
  std::vector<std::vector<float>> q_, k_, v_;  // [sequence][token, head, head_dim]
  CacheMemory cache_;
  std::vector<std::vector<std::int32_t>> tables_;
  std::vector<float> slopes_;  // [num_heads]
};

}  // namespace dculab::kernels

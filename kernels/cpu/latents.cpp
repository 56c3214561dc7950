// Latents out of the cache, what they expand to, and the products that take the place of expanding them.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/for_each_token.hpp"
#include "kernels/cpu/latent_kernels.hpp"
#include "kernels/cpu/packed_weights.hpp"
#include "kernels/cpu/preconditions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/latents.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include "kernels/cpu/kv/formats-inl.hpp"
#include "kernels/cpu/matmul_tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

template <typename T>
void widen_row(const KvRow<T>& row, int count, float* to) {
  for (int d = 0; d < count; d += kLanes) store_first(row.load(d, count), to + d, count - d);
}

template <typename T>
void gather_token(const GatherLatentsArgs& args, int index) {
  const KvCacheView& cache = args.cache;
  const int token = args.begin + index, rank = args.sizes.kv_lora_rank, rope = args.sizes.qk_rope_head_dim;
  const std::ptrdiff_t block = args.block_table[token / cache.block_size];
  const KvRow<T> row = key_row(cache, StoredRows<T>(cache), block * cache.block_size + token % cache.block_size);
  widen_row(row, rank, args.latents + std::ptrdiff_t{index} * rank);
  widen_row(KvRow<T>{row.values + rank, row.scale}, rope, args.keys + std::ptrdiff_t{index} * rope);
}

// One row of packed weights.
void unpack_row(const WeightView& weight, int columns, int row, float* to) {
  const PackedLayout layout{weight.rows, columns, weight.dtype, weight.group_size};
  const int lane = row % PackedLayout::kStripRows, step = layout.step();
  const auto* const strip = static_cast<const unsigned char*>(weight.data) +
                            static_cast<std::size_t>(row / PackedLayout::kStripRows) * layout.strip_bytes();
  const auto put = [&](int column, float value) {
    to[weight.permutation == nullptr ? column : weight.permutation[column]] = value;
  };
  for (int column = 0; column < columns; column += step) {
    const unsigned char* const header = strip + column / weight.group_size * PackedLayout::kGroupBytes;
    std::uint16_t scale_bits;
    std::memcpy(&scale_bits, header + 2 * lane, sizeof scale_bits);
    const float scale = f32_from_f16(scale_bits);
    const int zero = header[2 * PackedLayout::kStripRows + lane];
    const unsigned char* const codes =
        strip + layout.header_bytes() + column / step * PackedLayout::kStepBytes + 4 * lane;
    for (int i = 0; i < 4; ++i) {
      const int code = codes[i];
      put(column + i, static_cast<float>((step == 8 ? code & 15 : code) - zero) * scale);
      if (step == 8) put(column + 4 + i, static_cast<float>((code >> 4) - zero) * scale);
    }
  }
}

// One row of FP8 weights.
void widen_fp8_row(const Fp8Row& row, int columns, int column_shift, float* to) {
  for_each_scale(0, columns, column_shift, [&](int begin, int end, int block) {
    const Vector scale = hn::Set(F32(), row.scales[block]);
    for (int i = begin; i < end; i += kLanes)
      store_first(hn::Mul(row.load_first_at(i, end - i), scale), to + i, end - i);
  });
}

// Calls body(pointer to the first of `rows` rows from `first` on), as they are stored or as floats.
template <typename Body>
void with_rows(const AbsorbArgs& args, int first, int rows, float* scratch, Body&& body) {
  const WeightView& weight = args.kv_b_proj;
  const int columns = args.sizes.kv_lora_rank;
  const auto to = [&](int row) { return scratch + std::ptrdiff_t{row} * columns; };
  if (weight.dtype == Dtype::fp8_e4m3) {
    const Fp8Matrix matrix{static_cast<const Fp8E4m3*>(weight.data), columns, weight.scales};
    for (int row = 0; row < rows; ++row)
      widen_fp8_row(matrix.row(first + row), columns, weight.scales.column_shift, to(row));
    return body(static_cast<const float*>(scratch));
  }
  if (weight.dtype == Dtype::int4 || weight.dtype == Dtype::int8) {
    for (int row = 0; row < rows; ++row) unpack_row(weight, columns, first + row, to(row));
    return body(static_cast<const float*>(scratch));
  }
  with_stored_type(weight.data, weight.dtype, [&](auto* values) { body(values + std::ptrdiff_t{first} * columns); });
}

// A product of a few tokens with rows of weights: x [kRows, depth] times w [depth, columns].
template <typename T>
struct RowSums {
  const T* w;
  std::ptrdiff_t w_stride;
  int depth;
  const float* x;
  std::ptrdiff_t x_stride;
  float* y;
  std::ptrdiff_t y_stride;

  // Columns [column, column + kVectors * lanes), of a single vector the first `count`. A term at a time, in the order
  // of the rows.
  template <int kRows, int kVectors>
  HWY_INLINE void multiply(int row, int column, int count) const {
    Vector sums[kRows * kVectors];
    unrolled<kRows * kVectors>([&](auto i) DCULAB_INLINE { sums[i] = hn::Zero(F32()); });
    const float* const from = x + row * x_stride;
    for (int k = 0; k < depth; ++k) {
      const T* const weights = w + k * w_stride + column;
      Vector columns[kVectors];
      unrolled<kVectors>([&](auto i) DCULAB_INLINE {
        columns[i] = kVectors > 1 ? load(weights + i * kLanes) : load_first(weights, count);
      });
      unrolled<kRows>([&](auto r) DCULAB_INLINE {
        const Vector value = hn::Set(F32(), from[r * x_stride + k]);
        unrolled<kVectors>([&](auto i) DCULAB_INLINE {
          sums[r * kVectors + i] = hn::MulAdd(value, columns[i], sums[r * kVectors + i]);
        });
      });
    }
    unrolled<kRows * kVectors>([&](auto i) DCULAB_INLINE {
      float* const to = y + (row + i / kVectors) * y_stride + column + i % kVectors * kLanes;
      kVectors > 1 ? store(sums[i], to) : store_first(sums[i], to, count);
    });
  }

  template <int kRows>
  void multiply_rows(int row, int columns) const {
    constexpr int kVectors = HWY_TARGET <= HWY_AVX3 ? (kRows == 1 ? 8 : 4) : (kRows == 1 ? 4 : 2);
    int column = 0;
    for (; column + kVectors * kLanes <= columns; column += kVectors * kLanes)
      multiply<kRows, kVectors>(row, column, 0);
    for (; column < columns; column += kLanes) multiply<kRows, 1>(row, column, columns - column);
  }
};

// One head's queries over latents.
template <typename T>
void absorb_k_head(const AbsorbArgs& args, int head, const T* rows) {
  const LatentSizes& sizes = args.sizes;
  const float* const x = args.x + std::ptrdiff_t{head} * sizes.qk_head_dim();
  const std::ptrdiff_t y_stride = std::ptrdiff_t{sizes.num_heads} * sizes.latent_width();
  float* const y = args.y + std::ptrdiff_t{head} * sizes.latent_width();
  const RowSums<T> sums{rows, sizes.kv_lora_rank, sizes.qk_nope_head_dim, x, args.x_stride, y, y_stride};
  int token = 0;
  for (; token + 4 <= args.num_tokens; token += 4) sums.template multiply_rows<4>(token, sizes.kv_lora_rank);
  for (; token < args.num_tokens; ++token) sums.template multiply_rows<1>(token, sizes.kv_lora_rank);
  for (token = 0; token < args.num_tokens; ++token)
    std::copy_n(x + token * args.x_stride + sizes.qk_nope_head_dim, sizes.qk_rope_head_dim,
                y + token * y_stride + sizes.kv_lora_rank);
}

// One head's output.
template <typename T>
void absorb_v_head(const AbsorbArgs& args, int head, const T* rows) {
  const int rank = args.sizes.kv_lora_rank, width = args.sizes.v_head_dim;
  const float* const x = args.x + std::ptrdiff_t{head} * rank;
  const std::ptrdiff_t y_stride = std::ptrdiff_t{args.sizes.num_heads} * width;
  float* const y = args.y + std::ptrdiff_t{head} * width;
  for (int first = 0; first < width; first += kTileColumns) {
    const int columns = std::min(kTileColumns, width - first);
    WeightRows<PlainRow<T>> tile;
    for (int c = 0; c < kTileColumns; ++c) tile[c] = {rows + std::ptrdiff_t{first + std::min(c, columns - 1)} * rank};
    for_each_tile(args.num_tokens, [&](int token, int height) {
      with_tile_rows(height, [&](auto tile_rows) {
        TileSums<FloatTerms, tile_rows> sums;
        const float* const from = x + token * args.x_stride;
        if (token == 0)
          sums.add_streamed(from, args.x_stride, tile, 0, rank, rank);
        else
          sums.add(from, args.x_stride, tile, 0, rank);
        sums.finish(y + token * y_stride + first, y_stride, columns, false);
      });
    });
  }
}

// body(head, rows) for each head with its rows of kv_b_proj: `count` of them, `offset` rows into the head's.
template <typename Body>
void for_each_head(ThreadPool& threads, Workspace& workspace, const AbsorbArgs& args, int offset, int count,
                   Body&& body) {
  constexpr std::int64_t kInlineValues = 32 * 1024;  // weights below which waking threads costs more than it saves
  const std::int64_t values = std::int64_t{count} * args.sizes.kv_lora_rank;
  const Dtype dtype = args.kv_b_proj.dtype;
  const bool is_stored = dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
  float* const scratch =
      is_stored ? nullptr : workspace.floats(static_cast<std::size_t>(values * threads.num_threads()));
  const auto task = [&](int head, int worker) {
    with_rows(args, head * args.sizes.expanded_head_dim() + offset, count,
              is_stored ? nullptr : scratch + worker * values, [&](const auto* rows) { body(head, rows); });
  };
  if (values * args.sizes.num_heads * args.num_tokens >= kInlineValues)
    return threads.parallel_for(args.sizes.num_heads, task);
  for (int head = 0; head < args.sizes.num_heads; ++head) task(head, 0);
}

}  // namespace

void gather_latents_impl(ThreadPool& threads, const GatherLatentsArgs& args) {
  for_each_token(threads, args.end - args.begin, args.sizes.latent_width(), [&](int index) {
    with_row_type(args.cache.dtype, [&]<typename T>(const T*) { gather_token<T>(args, index); });
  });
}

void absorb_k_impl(ThreadPool& threads, Workspace& workspace, const AbsorbArgs& args) {
  for_each_head(threads, workspace, args, 0, args.sizes.qk_nope_head_dim,
                [&](int head, const auto* rows) { absorb_k_head(args, head, rows); });
}

void absorb_v_impl(ThreadPool& threads, Workspace& workspace, const AbsorbArgs& args) {
  for_each_head(threads, workspace, args, args.sizes.qk_nope_head_dim, args.sizes.v_head_dim,
                [&](int head, const auto* rows) { absorb_v_head(args, head, rows); });
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(gather_latents_impl);
HWY_EXPORT(absorb_k_impl);
HWY_EXPORT(absorb_v_impl);

namespace {

void require_kv_b_proj(const AbsorbArgs& args, const char* kernel) {
  const WeightView& weight = args.kv_b_proj;
  require(weight.rows == args.sizes.num_heads * args.sizes.expanded_head_dim(), kernel, "kv_b_proj has other heads");
  if (weight.dtype == Dtype::fp8_e4m3)
    require(weight.scales.times_256 != nullptr && weight.scales.column_shift >= Fp8Scales::kLeastColumnShift, kernel,
            "FP8 weights need scales of 128 columns at least");
  else if (weight.dtype == Dtype::int4 || weight.dtype == Dtype::int8)
    require(weight.group_size > 0 && weight.group_size % 8 == 0 && args.sizes.kv_lora_rank % weight.group_size == 0,
            kernel, "group_size is not a multiple of 8 that divides kv_lora_rank");
  else
    require_plain_floats(weight.dtype, kernel, "kv_b_proj");
}

}  // namespace

void gather_latents(ThreadPool& threads, const GatherLatentsArgs& args) {
  require_rows(args.cache, "gather_latents");
  require_kv_cache(args.cache, "gather_latents");
  HWY_DYNAMIC_DISPATCH(gather_latents_impl)(threads, args);
}

void store_expanded(ThreadPool& threads, const StoreExpandedArgs& args) {
  const LatentSizes& sizes = args.sizes;
  const KvCacheView& cache = args.cache;
  require(cache.dtype == Dtype::f32 && cache.num_kv_heads == sizes.num_heads && cache.head_dim == sizes.qk_head_dim() &&
              cache.value_width() == sizes.v_head_dim,
          "store_expanded", "the cache is not of these heads in F32");
  const int nope = sizes.qk_nope_head_dim, rope = sizes.qk_rope_head_dim, width = sizes.v_head_dim;
  const std::int64_t values = std::int64_t{sizes.num_heads} * (sizes.qk_head_dim() + width);
  for_each_token(threads, args.num_tokens, values, [&](int token) {
    const std::int64_t slot = args.first_slot + token, block = slot / cache.block_size;
    const float* from = args.expanded + std::ptrdiff_t{token} * sizes.num_heads * sizes.expanded_head_dim();
    const float* const key = args.keys + std::ptrdiff_t{token} * rope;
    for (int head = 0; head < sizes.num_heads; ++head, from += sizes.expanded_head_dim()) {
      const std::int64_t row = (block * sizes.num_heads + head) * cache.block_size + slot % cache.block_size;
      float* const k = static_cast<float*>(cache.k) + row * cache.head_dim;
      std::copy_n(from, nope, k);
      std::copy_n(key, rope, k + nope);
      std::copy_n(from + nope, width, static_cast<float*>(cache.v) + row * width);
    }
  });
}

void absorb_k(ThreadPool& threads, Workspace& workspace, const AbsorbArgs& args) {
  require_kv_b_proj(args, "absorb_k");
  HWY_DYNAMIC_DISPATCH(absorb_k_impl)(threads, workspace, args);
}

void absorb_v(ThreadPool& threads, Workspace& workspace, const AbsorbArgs& args) {
  require_kv_b_proj(args, "absorb_v");
  HWY_DYNAMIC_DISPATCH(absorb_v_impl)(threads, workspace, args);
}

}  // namespace dculab::kernels::cpu
#endif

// y = x w^T: streams w once for few rows of x (decode), packs both for many (prefill).
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/for_each_token.hpp"
#include "kernels/cpu/preconditions.hpp"
#include "kernels/cpu/quantized_matmul.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/matmul.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include "kernels/cpu/matmul_packed-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr int kStreamBytes = 128 * 1024;           // of w per task
constexpr std::int64_t kInlineValues = 32 * 1024;  // weights below which waking threads costs more than it saves

// y[:, 4 columns] for all rows of x, those of w from `first` on read from where they are stored.
template <class Terms, class Matrix>
void multiply_streamed(const Product<Terms>& product, const Matrix& w, int first, int columns, float* y, int y_stride) {
  const int k = product.k;
  WeightRows<typename Matrix::Row> rows;
  for (int c = 0; c < kTileColumns; ++c) rows[c] = w.row(first + std::min(c, columns - 1));
  for_each_tile(product.args.m, [&](int row, int height) {
    const auto* x = product.x + std::ptrdiff_t{row} * k;
    with_tile_rows(height, [&](auto tile_rows) {
      for (int begin = 0; begin < k; begin += Terms::kBlock) {
        const int end = std::min(k, begin + Terms::kBlock);
        TileSums<Terms, tile_rows> sums;
        const auto add = [&](auto& to, int first_in, int last_in) DCULAB_INLINE {
          if (row == 0) {
            to.add_streamed(x, k, rows, first_in, last_in, k);
          } else {
            to.add(x, k, rows, first_in, last_in);
          }
        };
        if constexpr (kHasScales<typename Matrix::Row>) {
          for_each_scale(begin, end, w.scales.column_shift, [&](int part_begin, int part_end, int block) {
            TileSums<Terms, tile_rows> part;
            add(part, part_begin, part_end);
            sums.add_scaled(part, rows, block);
          });
        } else {
          add(sums, begin, end);
        }
        sums.finish(y + std::ptrdiff_t{row} * y_stride, y_stride, columns, begin > 0);
      }
    });
  });
}

// Rows of w per task: about kStreamBytes, but as many tasks as make all threads end together.
int choose_stream_rows(int n, std::size_t row_bytes, int num_threads) {
  const int most_rows = std::max(kTileColumns, static_cast<int>(kStreamBytes / row_bytes));
  const int tasks = (n + most_rows - 1) / most_rows;
  const int even_tasks = (tasks + num_threads - 1) / num_threads * num_threads;
  const int rows = (n + even_tasks - 1) / even_tasks;
  return (rows + kTileColumns - 1) / kTileColumns * kTileColumns;
}

template <class Terms>
void stream(ThreadPool& threads, const Product<Terms>& product) {
  const MatmulArgs& args = product.args;
  const int n = total_rows(args);
  const std::size_t row_bytes =
      static_cast<std::size_t>(args.k) * static_cast<std::size_t>(bits(args.weights[0].dtype)) / 8;
  const int rows_per_task = choose_stream_rows(n, row_bytes, threads.num_threads());
  const auto task = [&](int index, int) {
    const int begin = index * rows_per_task;
    for_each_piece(args, begin, std::min(n, begin + rows_per_task), [&](const Piece& piece) {
      Terms::with_weights(piece.weight, product.k, [&](const auto& matrix) {
        for (int row = 0; row < piece.rows; row += kTileColumns) {
          multiply_streamed(product, matrix, piece.first + row, std::min(kTileColumns, piece.rows - row),
                            args.y + piece.column + row, n);
        }
      });
      add_bias(args, piece, n);
    });
  };
  const int tasks = (n + rows_per_task - 1) / rows_per_task;
  if (std::int64_t{n} * args.k * args.m < kInlineValues) {
    for (int index = 0; index < tasks; ++index) task(index, 0);
  } else {
    threads.parallel_for(tasks, task);
  }
}

}  // namespace

void matmul_impl(ThreadPool& threads, Workspace& workspace, const MatmulArgs& args, std::ptrdiff_t half_of_l2) {
  const bool streams = args.m <= kStreamedRows;
  const PackedPlan plan(args, threads.num_threads(), half_of_l2);
  const std::ptrdiff_t packed = streams ? 0 : plan.floats(threads.num_threads());
  const int pairs = args.activations == ActivationMode::bf16 ? args.k / 2 : 0;
  float* const memory = workspace.floats(static_cast<std::size_t>(packed + std::ptrdiff_t{args.m} * pairs));
  if (args.activations == ActivationMode::exact) {
    const Product<FloatTerms> product{args, args.x, args.k};
    return streams ? stream(threads, product) : multiply_packed(threads, memory, plan, product);
  }
  auto* const rounded = reinterpret_cast<Bf16Pair*>(memory + packed);
  for_each_token(threads, args.m, args.k, [&](int token) {
    round_to_pairs(args.x + std::ptrdiff_t{token} * args.k, args.k, rounded + std::ptrdiff_t{token} * pairs);
  });
  if (streams) {
    with_streamed_pairs([&](auto terms) { stream(threads, Product<decltype(terms)>{args, rounded, pairs}); });
  } else {
    with_packed_pairs([&](auto terms) {
      multiply_packed(threads, memory, plan, Product<decltype(terms)>{args, rounded, pairs});
    });
  }
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(matmul_impl);

std::ptrdiff_t half_of_l2() {
  static const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return (bytes > 0 ? bytes : 512 * 1024) / 2;
}

namespace {

void require_fp8_scales(const Fp8Scales& scales, int k) {
  require(scales.times_256 != nullptr, "matmul", "FP8 weights need scales");
  require(scales.column_shift >= Fp8Scales::kLeastColumnShift, "matmul",
          "FP8 scales are for blocks of at least 128 in-features");
  require(scales.column_blocks > (k - 1) >> scales.column_shift, "matmul", "FP8 scales do not cover all in-features");
}

}  // namespace

void matmul(ThreadPool& threads, Workspace& workspace, const MatmulArgs& args, std::ptrdiff_t half_of_l2) {
  if (args.weights[0].dtype == Dtype::int4 || args.weights[0].dtype == Dtype::int8) {
    return quantized_matmul(threads, workspace, args);
  }
  require(args.activations == ActivationMode::exact || args.activations == ActivationMode::bf16, "matmul",
          "plain weights take no 8-bit activations");
  for (int i = 0; i < args.num_weights; ++i) {
    const Dtype dtype = args.weights[static_cast<std::size_t>(i)].dtype;
    if (dtype == Dtype::fp8_e4m3) {
      require_fp8_scales(args.weights[static_cast<std::size_t>(i)].scales, args.k);
    } else {
      require_plain_floats(dtype, "matmul", "weight");
    }
    require(args.activations == ActivationMode::exact || (dtype == Dtype::bf16 && args.k % 2 == 0), "matmul",
            "BF16 activations need BF16 weights and an even number of in-features");
  }
  HWY_DYNAMIC_DISPATCH(matmul_impl)(threads, workspace, args, half_of_l2);
}

}  // namespace dculab::kernels::cpu
#endif

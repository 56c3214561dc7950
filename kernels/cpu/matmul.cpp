// y = x w^T: streams w once for few rows of x (decode), packs both for many (prefill).
#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/preconditions.hpp"
#include "kernels/cpu/quantized_matmul.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/matmul.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include "kernels/cpu/matmul_panel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr int kStreamBytes = 128 * 1024;           // of w per task
constexpr std::int64_t kInlineValues = 32 * 1024;  // weights below which waking threads costs more than it saves

int total_rows(const MatmulArgs& args) {
  int rows = 0;
  for (int i = 0; i < args.num_weights; ++i) rows += args.weights[static_cast<std::size_t>(i)].rows;
  return rows;
}

// Rows [first, first + rows) of one of the matrices; their products are columns [column, column + rows) of y.
struct Piece {
  const WeightView& weight;
  const float* bias;  // of the first row, or null
  int first, rows, column;
};

// Calls body(piece) for the matrices in rows [begin, end) of all of them together.
template <typename Body>
void for_each_piece(const MatmulArgs& args, int begin, int end, Body&& body) {
  int base = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(args.num_weights); ++i) {
    const WeightView& weight = args.weights[i];
    const int first = std::max(begin, base), last = std::min(end, base + weight.rows);
    if (first < last) {
      const float* bias = args.biases[i] == nullptr ? nullptr : args.biases[i] + (first - base);
      body(Piece{weight, bias, first - base, last - first, first});
    }
    base += weight.rows;
  }
}

// y[:, columns of the piece] += bias, once the products are there.
void add_bias(const MatmulArgs& args, const Piece& piece, int y_stride) {
  if (piece.bias == nullptr) return;
  for (int row = 0; row < args.m; ++row) {
    float* y = args.y + std::ptrdiff_t{row} * y_stride + piece.column;
    for (int i = 0; i < piece.rows; i += kLanes) {
      const int left = piece.rows - i;
      store_first(hn::Add(load_first(y + i, left), load_first(piece.bias + i, left)), y + i, left);
    }
  }
}

// y[:, 4 columns] for all rows of x, w read from where it is stored.
template <typename T>
void multiply_streamed(const MatmulArgs& args, const T* w, int columns, float* y, int y_stride) {
  WeightRows<T> rows;
  for (int c = 0; c < kTileColumns; ++c) rows[c] = w + std::ptrdiff_t{std::min(c, columns - 1)} * args.k;
  for_each_tile(args.m, [&](int row, int height) {
    const float* x = args.x + std::ptrdiff_t{row} * args.k;
    with_tile_rows(height, [&](auto tile_rows) {
      for (int begin = 0; begin < args.k; begin += kBlockK) {
        const int end = std::min(args.k, begin + kBlockK);
        TileSums<tile_rows> sums;
        if (row == 0) {
          sums.add_streamed(x, args.k, rows, begin, end, args.k);
        } else {
          sums.add(x, args.k, rows, begin, end);
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

void stream(ThreadPool& threads, const MatmulArgs& args) {
  const int n = total_rows(args);
  const std::size_t row_bytes = static_cast<std::size_t>(args.k) * (args.weights[0].dtype == Dtype::f32 ? 4 : 2);
  const int rows_per_task = choose_stream_rows(n, row_bytes, threads.num_threads());
  const auto task = [&](int index, int) {
    const int begin = index * rows_per_task;
    for_each_piece(args, begin, std::min(n, begin + rows_per_task), [&](const Piece& piece) {
      with_stored_type(piece.weight.data, piece.weight.dtype, [&](auto* data) {
        for (int row = 0; row < piece.rows; row += kTileColumns) {
          multiply_streamed(args, data + std::ptrdiff_t{piece.first + row} * args.k,
                            std::min(kTileColumns, piece.rows - row), args.y + piece.column + row, n);
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

// A block of x, packed for the panel loop: tiles of at most kPanelTokens rows, of nearly equal height.
class PackedTokens {
 public:
  PackedTokens(float* memory, const MatmulArgs& args) : args_(args), memory_(memory) {}

  [[nodiscard]] static int tiles(int tokens) { return (tokens + kPanelTokens - 1) / kPanelTokens; }
  [[nodiscard]] int tiles() const { return tiles(args_.m); }
  [[nodiscard]] int begin(int index) const { return static_cast<int>(std::int64_t{args_.m} * index / tiles()); }
  [[nodiscard]] const float* tile(int index) const { return memory_ + index * kTileFloats; }

  void pack(int index, int k_begin, int k_end) const {
    const float* x = args_.x + std::ptrdiff_t{begin(index)} * args_.k + k_begin;
    pack_rows<1>(x, args_.k, begin(index + 1) - begin(index), k_end - k_begin, memory_ + index * kTileFloats,
                 kTokenStep);
  }

 private:
  const MatmulArgs& args_;
  float* memory_;
};

// y[:, columns of the piece] = or += the product of one block. The panel stays in L2 while the tiles of x pass.
void multiply_piece(const MatmulArgs& args, const PackedTokens& x, const Piece& piece, int k_begin, int k_end,
                    float* panel, int y_stride) {
  with_stored_type(piece.weight.data, piece.weight.dtype, [&](auto* data) {
    pack_rows<kPanelVectors>(data + std::ptrdiff_t{piece.first} * args.k + k_begin, args.k, piece.rows, k_end - k_begin,
                             panel, kRowStep);
  });
  for (int t = 0; t < x.tiles(); ++t) {
    const OutputTile out{args.y + std::ptrdiff_t{x.begin(t)} * y_stride + piece.column, y_stride, piece.rows};
    with_panel_tokens(x.begin(t + 1) - x.begin(t), [&](auto tokens) {
      multiply_phases<tokens>(x.tile(t), panel, phase_depth(k_end - k_begin), out, k_begin > 0);
    });
  }
}

void multiply_packed(ThreadPool& threads, Workspace& workspace, const MatmulArgs& args) {
  const int n = total_rows(args), tiles = PackedTokens::tiles(args.m);
  const std::ptrdiff_t x_floats = tiles * kTileFloats;
  float* memory = workspace.floats(static_cast<std::size_t>(x_floats + threads.num_threads() * kPanelFloats));
  const PackedTokens x(memory, args);
  for (int begin = 0; begin < args.k; begin += kBlockK) {
    const int end = std::min(args.k, begin + kBlockK);
    threads.parallel_for(tiles, [&](int index, int) { x.pack(index, begin, end); });
    threads.parallel_for((n + kPanelRows - 1) / kPanelRows, [&](int index, int worker) {
      float* panel = memory + x_floats + worker * kPanelFloats;
      const int first = index * kPanelRows;
      for_each_piece(args, first, std::min(n, first + kPanelRows), [&](const Piece& piece) {
        multiply_piece(args, x, piece, begin, end, panel, n);
        if (end == args.k) add_bias(args, piece, n);
      });
    });
  }
}

}  // namespace

void matmul_impl(ThreadPool& threads, Workspace& workspace, const MatmulArgs& args) {
  if (args.m <= kStreamedRows) {
    stream(threads, args);
  } else {
    multiply_packed(threads, workspace, args);
  }
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(matmul_impl);

void matmul(ThreadPool& threads, Workspace& workspace, const MatmulArgs& args) {
  if (args.weights[0].dtype == Dtype::int4 || args.weights[0].dtype == Dtype::int8) {
    return quantized_matmul(threads, workspace, args);
  }
  for (int i = 0; i < args.num_weights; ++i) {
    require_plain_floats(args.weights[static_cast<std::size_t>(i)].dtype, "matmul", "weight");
  }
  HWY_DYNAMIC_DISPATCH(matmul_impl)(threads, workspace, args);
}

}  // namespace dculab::kernels::cpu
#endif

// y = x w^T: streams w once for few rows of x (decode), tiles it through the L2 cache for many (prefill).
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
#include "kernels/cpu/matmul_tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr int kStreamedRows = 16;                  // of x: up to here w is read where it lies
constexpr int kStreamBytes = 128 * 1024;           // of w per task
constexpr int kPanelBytes = 512 * 1024;            // of w as F32: half of a 1 MiB L2
constexpr int kBlockK = 512;                       // x tile and w tile of this depth fit in L1
constexpr std::int64_t kInlineValues = 32 * 1024;  // weights below which waking threads costs more than it saves

int total_rows(const MatmulArgs& args) {
  int rows = 0;
  for (int i = 0; i < args.num_weights; ++i) rows += args.weights[static_cast<std::size_t>(i)].rows;
  return rows;
}

// y[:, column ...] += bias, once the products are there.
void add_bias(const MatmulArgs& args, const float* bias, int rows, int column, int y_stride) {
  if (bias == nullptr) return;
  for (int row = 0; row < args.m; ++row) {
    float* y = args.y + std::ptrdiff_t{row} * y_stride + column;
    for (int i = 0; i < rows; i += kLanes) {
      store_first(hn::Add(load_first(y + i, rows - i), load_first(bias + i, rows - i)), y + i, rows - i);
    }
  }
}

// Walks rows [begin, end) of the concatenated matrices: body(weight view, first row in it, rows, column of y) computes
// their columns of y, which then get their biases.
template <typename Body>
void for_each_piece(const MatmulArgs& args, int begin, int end, Body&& body) {
  int base = 0;
  const int n = total_rows(args);
  for (std::size_t i = 0; i < static_cast<std::size_t>(args.num_weights); ++i) {
    const WeightView& weight = args.weights[i];
    const int first = std::max(begin, base), last = std::min(end, base + weight.rows);
    if (first < last) {
      body(weight, first - base, last - first, first);
      add_bias(args, args.biases[i] == nullptr ? nullptr : args.biases[i] + (first - base), last - first, first, n);
    }
    base += weight.rows;
  }
}

// y[:, 4 columns] for all rows of x, w read from where it is stored.
template <typename T>
void multiply_streamed(const MatmulArgs& args, const T* w, int columns, float* y, int y_stride) {
  WeightRows<T> rows;
  for (int c = 0; c < kTileColumns; ++c) rows[c] = w + std::ptrdiff_t{std::min(c, columns - 1)} * args.k;
  for_each_tile(args.m, [&](int row, int height) {
    with_tile_rows(height, [&](auto tile_rows) {
      TileSums<tile_rows> sums;
      const float* x = args.x + std::ptrdiff_t{row} * args.k;
      if (row == 0) {
        sums.add_streamed(x, args.k, rows, args.k);
      } else {
        sums.add(x, args.k, rows, args.k);
      }
      sums.finish(y + std::ptrdiff_t{row} * y_stride, y_stride, columns);
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
    for_each_piece(args, begin, std::min(n, begin + rows_per_task),
                   [&](const WeightView& weight, int first, int rows, int column) {
                     with_stored_type(weight.data, weight.dtype, [&](auto* data) {
                       for (int row = 0; row < rows; row += kTileColumns) {
                         multiply_streamed(args, data + std::ptrdiff_t{first + row} * args.k,
                                           std::min(kTileColumns, rows - row), args.y + column + row, n);
                       }
                     });
                   });
  };
  const int tasks = (n + rows_per_task - 1) / rows_per_task;
  if (std::int64_t{n} * args.k * args.m < kInlineValues) {
    for (int index = 0; index < tasks; ++index) task(index, 0);
  } else {
    threads.parallel_for(tasks, task);
  }
}

// A few rows of w as F32, cut along k so that four rows of one block of k lie together.
class Panel {
 public:
  Panel(float* memory, int rows, int k) : values_(memory), rows_(rows), k_(k) {}

  [[nodiscard]] static std::size_t floats(int rows, int k) {
    const int depth = (k + kBlockK - 1) / kBlockK * kBlockK;
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(depth);
  }
  [[nodiscard]] float* row(int row, int block) const {
    return values_ + (std::ptrdiff_t{block} * rows_ + row) * kBlockK;
  }

  template <typename T>
  void fill(const T* w, int rows) const {
    for (int r = 0; r < rows; ++r) {
      const T* from = w + std::ptrdiff_t{r} * k_;
      for (int begin = 0; begin < k_; begin += kBlockK) {
        float* to = row(r, begin / kBlockK);
        const int depth = std::min(kBlockK, k_ - begin);
        int i = 0;
        for (; i + kLanes <= depth; i += kLanes) store(load(from + begin + i), to + i);
        if (i < depth) store(load_first(from + begin + i, depth - i), to + i);
      }
    }
  }

 private:
  float* values_;
  int rows_, k_;
};

// One tile of y over one block of k; `paused` holds its sums between blocks.
template <int kRows>
HWY_NOINLINE void multiply_tile(const float* x, int k, int begin, const WeightRows<float>& w, float* paused, float* y,
                                int y_stride, int columns) {
  const int depth = std::min(kBlockK, k - begin);
  TileSums<kRows> sums;
  if (begin > 0) sums.resume(paused);
  sums.add(x + begin, k, w, depth);
  if (begin + depth < k) {
    sums.pause(paused);
  } else {
    sums.finish(y, y_stride, columns);
  }
}

// y[rows of x, columns of the panel], one x tile at a time, the panel staying in L2.
void multiply_panel(const MatmulArgs& args, const Panel& panel, int columns, int row_begin, int row_end, float* paused,
                    float* y, int y_stride) {
  for_each_tile(row_end - row_begin, [&](int row, int height) {
    const float* x = args.x + std::ptrdiff_t{row_begin + row} * args.k;
    float* out = y + std::ptrdiff_t{row_begin + row} * y_stride;
    for (int begin = 0; begin < args.k; begin += kBlockK) {
      for (int c = 0; c < columns; c += kTileColumns) {
        WeightRows<float> rows;
        for (int i = 0; i < kTileColumns; ++i) rows[i] = panel.row(std::min(c + i, columns - 1), begin / kBlockK);
        float* tile_paused = paused + c / kTileColumns * kTileFloats;
        with_tile_rows(height, [&](auto tile_rows) {
          multiply_tile<tile_rows>(x, args.k, begin, rows, tile_paused, out + c, y_stride,
                                   columns - c < kTileColumns ? columns - c : kTileColumns);
        });
      }
    }
  });
}

void tile(ThreadPool& threads, Workspace& workspace, const MatmulArgs& args) {
  const int n = total_rows(args);
  const int depth = (args.k + kBlockK - 1) / kBlockK * kBlockK;
  // Enough tasks to balance the threads, unless that makes panels too thin to reuse x.
  const int balanced = n / (4 * threads.num_threads());
  const int panel_rows = std::clamp(std::min(kPanelBytes / 4 / depth, std::max(balanced, 16)) / 4 * 4, 4, 128);
  const std::size_t panel_floats = Panel::floats(panel_rows, args.k);
  const std::size_t floats = panel_floats + static_cast<std::size_t>(panel_rows / kTileColumns * kTileFloats);
  float* memory = workspace.floats(floats * static_cast<std::size_t>(threads.num_threads()));
  threads.parallel_for((n + panel_rows - 1) / panel_rows, [&](int index, int worker) {
    float* mine = memory + floats * static_cast<std::size_t>(worker);
    const Panel panel(mine, panel_rows, args.k);
    const int begin = index * panel_rows;
    for_each_piece(args, begin, std::min(n, begin + panel_rows),
                   [&](const WeightView& weight, int first, int rows, int column) {
                     with_stored_type(weight.data, weight.dtype,
                                      [&](auto* data) { panel.fill(data + std::ptrdiff_t{first} * args.k, rows); });
                     multiply_panel(args, panel, rows, 0, args.m, mine + panel_floats, args.y + column, n);
                   });
  });
}

}  // namespace

void matmul_impl(ThreadPool& threads, Workspace& workspace, const MatmulArgs& args) {
  if (args.m <= kStreamedRows) {
    stream(threads, args);
  } else {
    tile(threads, workspace, args);
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

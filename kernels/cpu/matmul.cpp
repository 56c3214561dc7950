// y = x w^T: streams w once for few rows of x (decode), packs both for many (prefill).
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

// A product, and its activations in the form that the terms take.
template <class Terms>
struct Product {
  using X = typename Terms::X;

  const MatmulArgs& args;
  const X* x;  // [m, k]
  int k;
};

// y[:, 4 columns] for all rows of x, w read from where it is stored.
template <class Terms, typename T>
void multiply_streamed(const Product<Terms>& product, const T* w, int columns, float* y, int y_stride) {
  const int k = product.k;
  WeightRows<T> rows;
  for (int c = 0; c < kTileColumns; ++c) rows[c] = w + std::ptrdiff_t{std::min(c, columns - 1)} * k;
  for_each_tile(product.args.m, [&](int row, int height) {
    const auto* x = product.x + std::ptrdiff_t{row} * k;
    with_tile_rows(height, [&](auto tile_rows) {
      for (int begin = 0; begin < k; begin += Terms::kBlock) {
        const int end = std::min(k, begin + Terms::kBlock);
        TileSums<Terms, tile_rows> sums;
        if (row == 0) {
          sums.add_streamed(x, k, rows, begin, end, k);
        } else {
          sums.add(x, k, rows, begin, end);
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
  const std::size_t row_bytes = static_cast<std::size_t>(args.k) * (args.weights[0].dtype == Dtype::f32 ? 4 : 2);
  const int rows_per_task = choose_stream_rows(n, row_bytes, threads.num_threads());
  const auto task = [&](int index, int) {
    const int begin = index * rows_per_task;
    for_each_piece(args, begin, std::min(n, begin + rows_per_task), [&](const Piece& piece) {
      Terms::with_weights(piece.weight, [&](auto* data) {
        for (int row = 0; row < piece.rows; row += kTileColumns) {
          multiply_streamed(product, data + std::ptrdiff_t{piece.first + row} * product.k,
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

int token_tiles(int tokens) { return (tokens + kPanelTokens - 1) / kPanelTokens; }

// A block of x, packed for the panel loop: tiles of at most kPanelTokens rows, of nearly equal height.
template <class Terms>
class PackedTokens {
 public:
  PackedTokens(float* memory, const Product<Terms>& product) : product_(product), memory_(memory) {}

  [[nodiscard]] int tiles() const { return token_tiles(product_.args.m); }
  [[nodiscard]] int begin(int index) const { return static_cast<int>(std::int64_t{product_.args.m} * index / tiles()); }
  [[nodiscard]] const float* tile(int index) const { return memory_ + index * kTileFloats; }

  void pack(int index, int k_begin, int k_end) const {
    const auto* x = product_.x + std::ptrdiff_t{begin(index)} * product_.k + k_begin;
    pack_rows<Terms, 1>(x, product_.k, begin(index + 1) - begin(index), k_end - k_begin, memory_ + index * kTileFloats,
                        kTokenStep);
  }

 private:
  const Product<Terms>& product_;
  float* memory_;
};

// y[:, columns of the piece] = or += the product of one block. The panel stays in L2 while the tiles of x pass.
template <class Terms>
void multiply_piece(const Product<Terms>& product, const PackedTokens<Terms>& x, const Piece& piece, int k_begin,
                    int k_end, float* panel, int y_stride) {
  Terms::with_weights(piece.weight, [&](auto* data) {
    pack_rows<Terms, kPanelVectors>(data + std::ptrdiff_t{piece.first} * product.k + k_begin, product.k, piece.rows,
                                    k_end - k_begin, panel, kRowStep);
  });
  for (int t = 0; t < x.tiles(); ++t) {
    const OutputTile out{product.args.y + std::ptrdiff_t{x.begin(t)} * y_stride + piece.column, y_stride, piece.rows};
    with_panel_tokens(x.begin(t + 1) - x.begin(t), [&](auto tokens) {
      multiply_phases<typename Terms::Packed, tokens>(x.tile(t), panel, Terms::kWords * phase_depth(k_end - k_begin),
                                                      out, k_begin > 0);
    });
  }
}

std::ptrdiff_t packed_floats(const MatmulArgs& args, int num_threads) {
  return token_tiles(args.m) * kTileFloats + num_threads * kPanelFloats;
}

// `memory` has packed_floats().
template <class Terms>
void multiply_packed(ThreadPool& threads, float* memory, const Product<Terms>& product) {
  const MatmulArgs& args = product.args;
  const int n = total_rows(args);
  const PackedTokens<Terms> x(memory, product);
  float* const panels = memory + x.tiles() * kTileFloats;
  for (int begin = 0; begin < product.k; begin += Terms::kBlock) {
    const int end = std::min(product.k, begin + Terms::kBlock);
    threads.parallel_for(x.tiles(), [&](int index, int) { x.pack(index, begin, end); });
    threads.parallel_for((n + kPanelRows - 1) / kPanelRows, [&](int index, int worker) {
      float* panel = panels + worker * kPanelFloats;
      const int first = index * kPanelRows;
      for_each_piece(args, first, std::min(n, first + kPanelRows), [&](const Piece& piece) {
        multiply_piece(product, x, piece, begin, end, panel, n);
        if (end == product.k) add_bias(args, piece, n);
      });
    });
  }
}

}  // namespace

void matmul_impl(ThreadPool& threads, Workspace& workspace, const MatmulArgs& args) {
  const bool streams = args.m <= kStreamedRows;
  const std::ptrdiff_t packed = streams ? 0 : packed_floats(args, threads.num_threads());
  const int pairs = args.activations == ActivationMode::bf16 ? args.k / 2 : 0;
  float* const memory = workspace.floats(static_cast<std::size_t>(packed + std::ptrdiff_t{args.m} * pairs));
  if (args.activations == ActivationMode::exact) {
    const Product<FloatTerms> product{args, args.x, args.k};
    return streams ? stream(threads, product) : multiply_packed(threads, memory, product);
  }
  auto* const rounded = reinterpret_cast<Bf16Pair*>(memory + packed);
  for_each_token(threads, args.m, args.k, [&](int token) {
    round_to_pairs(args.x + std::ptrdiff_t{token} * args.k, args.k, rounded + std::ptrdiff_t{token} * pairs);
  });
  if (streams) {
    with_streamed_pairs([&](auto terms) { stream(threads, Product<decltype(terms)>{args, rounded, pairs}); });
  } else {
    with_packed_pairs([&](auto terms) {
      multiply_packed(threads, memory, Product<decltype(terms)>{args, rounded, pairs});
    });
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
  require(args.activations != ActivationMode::int8, "matmul", "plain weights take no 8-bit activations");
  for (int i = 0; i < args.num_weights; ++i) {
    const Dtype dtype = args.weights[static_cast<std::size_t>(i)].dtype;
    require_plain_floats(dtype, "matmul", "weight");
    require(args.activations == ActivationMode::exact || (dtype == Dtype::bf16 && args.k % 2 == 0), "matmul",
            "BF16 activations need BF16 weights and an even number of in-features");
  }
  HWY_DYNAMIC_DISPATCH(matmul_impl)(threads, workspace, args);
}

}  // namespace dculab::kernels::cpu
#endif

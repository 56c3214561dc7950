// y = x w^T for many rows of x: both are packed, and panels of w stay in L2 while the tiles of x pass.
#if defined(DCULAB_KERNELS_CPU_MATMUL_PACKED_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_MATMUL_PACKED_INL_HPP_
#undef DCULAB_KERNELS_CPU_MATMUL_PACKED_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_MATMUL_PACKED_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>

#include "kernels/cpu/matmul_panel-inl.hpp"
#include "kernels/cpu/matmul_pieces-inl.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "lower/dculab_cpu/geometry.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

// Room behind a panel for the scales of one block of FP8 weights.
inline std::ptrdiff_t scale_floats(const MatmulArgs& args) {
  const auto is_fp8 = [](const WeightView& weight) { return weight.dtype == Dtype::fp8_e4m3; };
  return std::ranges::any_of(args.weights, is_fp8)
             ? std::ptrdiff_t{kPanelRows} * (kBlockK >> Fp8Scales::kLeastColumnShift)
             : 0;
}

inline int token_tiles(int tokens) { return (tokens + kPanelTokens - 1) / kPanelTokens; }

// In-features [begin, end), whose sum is taken first.
template <class Terms>
struct Block {
  int begin, end;

  [[nodiscard]] int depth() const { return Terms::kWords * phase_depth(end - begin); }
};

// A block of x, packed for the panel loop: tiles of at most kPanelTokens rows, of nearly equal height.
template <class Terms>
class PackedTokens {
 public:
  PackedTokens(float* memory, const Product<Terms>& product, Block<Terms> block)
      : product_(product), block_(block), memory_(memory) {}

  [[nodiscard]] int tiles() const { return token_tiles(product_.args.m); }
  [[nodiscard]] int begin(int index) const { return static_cast<int>(std::int64_t{product_.args.m} * index / tiles()); }
  [[nodiscard]] const float* tile(int index) const { return at(index); }

  void pack(int index) const {
    const PlainMatrix<typename Terms::X> x{product_.x, product_.k};
    pack_rows<Terms, 1>(x, begin(index), begin(index + 1) - begin(index), block_.begin, block_.end - block_.begin,
                        at(index), step_floats(block_.depth(), kLanes));
  }

 private:
  [[nodiscard]] float* at(int index) const { return memory_ + index * tile_floats(block_.depth()); }

  const Product<Terms>& product_;
  Block<Terms> block_;
  float* memory_;
};

// A block of some rows of w, counted over all matrices, packed: panels of kPanelRows, one after another. A matrix that
// ends within a panel makes one more of it.
template <class Terms>
class PackedWeights {
 public:
  PackedWeights(float* memory, const Product<Terms>& product, Block<Terms> block, int first_row, int rows)
      : product_(product),
        block_(block),
        memory_(memory),
        begin_(first_row),
        end_(std::min(total_rows(product.args), first_row + rows)) {}

  // Calls body(piece, packed) for each panel.
  template <typename Body>
  void for_each_panel(Body&& body) const {
    float* packed = memory_;
    for (int begin = begin_; begin < end_; begin += kPanelRows) {
      for_each_piece(product_.args, begin, std::min(end_, begin + kPanelRows), [&](const Piece& piece) {
        body(piece, packed);
        packed += panel_floats(block_.depth()) + scale_floats(product_.args);
      });
    }
  }

  // Of a panel of FP8 weights.
  [[nodiscard]] PanelScales scales_of(const Piece& piece, const float* packed) const {
    if (piece.weight.dtype != Dtype::fp8_e4m3) return {};
    const int columns = std::min(product_.k, 1 << std::min(piece.weight.scales.column_shift, kLargestShift));
    return {packed + panel_floats(block_.depth()), (columns + kLanes - 1) / kLanes};
  }

  void pack() const {
    for_each_panel([&](const Piece& piece, float* packed) {
      if (piece.weight.dtype == Dtype::fp8_e4m3) pack_scales(piece, packed + panel_floats(block_.depth()));
      Terms::with_weights(piece.weight, product_.k, [&](const auto& matrix) {
        pack_rows<Terms, kPanelVectors>(matrix, piece.first, piece.rows, block_.begin, block_.end - block_.begin,
                                        packed, step_floats(block_.depth(), kPanelRows));
      });
    });
  }

 private:
  static constexpr int kLargestShift = 30;

  // [part of the block that has one scale, kPanelRows]; rows that do not exist repeat the last.
  void pack_scales(const Piece& piece, float* out) const {
    const Fp8Scales& scales = piece.weight.scales;
    for_each_scale(block_.begin, block_.end, scales.column_shift, [&](int, int, int column) {
      for (int row = 0; row < kPanelRows; ++row)
        *out++ = scales.of_row(piece.first + std::min(row, piece.rows - 1))[column];
    });
  }

  const Product<Terms>& product_;
  Block<Terms> block_;
  float* memory_;
  int begin_, end_;
};

// y[:, columns of the panels] = or += the product of one block. The panels stay in L2 while the tiles of x pass.
template <class Terms>
void multiply_panels(const Product<Terms>& product, Block<Terms> block, const PackedTokens<Terms>& x,
                     const PackedWeights<Terms>& w, int y_stride) {
  for (int t = 0; t < x.tiles(); ++t) {
    float* const y = product.args.y + std::ptrdiff_t{x.begin(t)} * y_stride;
    with_panel_tokens(x.begin(t + 1) - x.begin(t), [&](auto tokens) {
      w.for_each_panel([&](const Piece& piece, const float* packed) {
        const OutputTile out{y + piece.column, y_stride, piece.rows};
        multiply_phases<typename Terms::Packed, tokens>(x.tile(t), packed, block.depth(), w.scales_of(piece, packed),
                                                        out, block.begin > 0);
      });
    });
  }
}

// How a packed product is divided, and the memory it takes: the packed x, and each worker's panels.
struct PackedPlan {
  int rows_per_task;  // of w
  std::ptrdiff_t x_floats, worker_floats;

  PackedPlan(const MatmulArgs& args, int num_threads, std::ptrdiff_t half_of_l2) {
    constexpr std::ptrdiff_t kFloat = sizeof(float);
    const int depth = 2 * phase_depth((std::min(args.k, kBlockK) + 1) / 2);  // of floats, or pairs as two words
    const std::ptrdiff_t floats = panel_floats(depth) + scale_floats(args);
    x_floats = token_tiles(args.m) * tile_floats(depth);
    const int all = (total_rows(args) + kPanelRows - 1) / kPanelRows;
    const int panels =
        lower::dculab_cpu::panels_per_task({all, kFloat * x_floats, kFloat * floats}, half_of_l2, num_threads);
    rows_per_task = panels * kPanelRows;
    worker_floats = (panels + args.num_weights - 1) * floats;
  }

  [[nodiscard]] std::ptrdiff_t floats(int num_threads) const { return x_floats + num_threads * worker_floats; }
};

// `memory` has plan.floats().
template <class Terms>
void multiply_packed(ThreadPool& threads, float* memory, const PackedPlan& plan, const Product<Terms>& product) {
  const MatmulArgs& args = product.args;
  const int n = total_rows(args), rows = plan.rows_per_task;
  for (int begin = 0; begin < product.k; begin += Terms::kBlock) {
    const Block<Terms> block{begin, std::min(product.k, begin + Terms::kBlock)};
    const PackedTokens<Terms> x(memory, product, block);
    threads.parallel_for(x.tiles(), [&](int index, int) { x.pack(index); });
    threads.parallel_for((n + rows - 1) / rows, [&](int index, int worker) {
      float* const mine = memory + plan.x_floats + worker * plan.worker_floats;
      const PackedWeights<Terms> w(mine, product, block, index * rows, rows);
      w.pack();
      multiply_panels(product, block, x, w, n);
      if (block.end == product.k) w.for_each_panel([&](const Piece& piece, const float*) { add_bias(args, piece, n); });
    });
  }
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

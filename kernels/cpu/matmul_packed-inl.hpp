// y = x w^T for many rows of x: both are packed, and panels of w stay in L2 while the tiles of x pass.
#if defined(DCULAB_KERNELS_CPU_MATMUL_PACKED_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_MATMUL_PACKED_INL_HPP_
#undef DCULAB_KERNELS_CPU_MATMUL_PACKED_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_MATMUL_PACKED_INL_HPP_
#endif

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cpu/matmul_panel-inl.hpp"
#include "kernels/cpu/matmul_pieces-inl.hpp"
#include "kernels/cpu/thread_pool.hpp"

#ifndef DCULAB_KERNELS_CPU_MATMUL_PACKED_L2_
#define DCULAB_KERNELS_CPU_MATMUL_PACKED_L2_
namespace dculab::kernels::cpu {

// Bytes; of 512 KiB where the system does not say.
inline std::ptrdiff_t half_of_l2() {
  static const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return (bytes > 0 ? bytes : 512 * 1024) / 2;
}

}  // namespace dculab::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

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
    const auto* x = product_.x + std::ptrdiff_t{begin(index)} * product_.k + block_.begin;
    pack_rows<Terms, 1>(x, product_.k, begin(index + 1) - begin(index), block_.end - block_.begin, at(index),
                        step_floats(block_.depth(), kLanes));
  }

 private:
  [[nodiscard]] float* at(int index) const { return memory_ + index * tile_floats(block_.depth()); }

  const Product<Terms>& product_;
  Block<Terms> block_;
  float* memory_;
};

// A panel of w: some of the rows of one matrix, packed.
struct Panel {
  Piece piece;
  float* packed;
};

template <class Terms>
void pack(const Product<Terms>& product, Block<Terms> block, const Panel& panel) {
  Terms::with_weights(panel.piece.weight, [&](auto* data) {
    pack_rows<Terms, kPanelVectors>(data + std::ptrdiff_t{panel.piece.first} * product.k + block.begin, product.k,
                                    panel.piece.rows, block.end - block.begin, panel.packed,
                                    step_floats(block.depth(), kPanelRows));
  });
}

// y[:, columns of the panels] = or += the product of one block. The panels stay in L2 while the tiles of x pass.
template <class Terms>
void multiply_panels(const Product<Terms>& product, Block<Terms> block, const PackedTokens<Terms>& x,
                     std::span<const Panel> panels, int y_stride) {
  for (int t = 0; t < x.tiles(); ++t) {
    float* const y = product.args.y + std::ptrdiff_t{x.begin(t)} * y_stride;
    with_panel_tokens(x.begin(t + 1) - x.begin(t), [&](auto tokens) {
      for (const Panel& panel : panels) {
        const OutputTile out{y + panel.piece.column, y_stride, panel.piece.rows};
        multiply_phases<typename Terms::Packed, tokens>(x.tile(t), panel.packed, block.depth(), out, block.begin > 0);
      }
    });
  }
}

// How a packed product is divided, and the memory it takes: the packed x, and each worker's panels.
struct PackedPlan {
  int panels_per_task;  // of kPanelRows rows of w
  std::ptrdiff_t x_floats, worker_floats;

  // The more panels a task takes through the tiles of x, the less often x is read: half of L2 at most, and so few that
  // every thread has as many tasks. One where x stays in the other half. A matrix that ends within a panel makes one
  // more of it.
  PackedPlan(const MatmulArgs& args, int num_threads) {
    const int depth = 2 * phase_depth((std::min(args.k, kBlockK) + 1) / 2);  // of floats, or pairs as two words
    const std::ptrdiff_t floats = panel_floats(depth), half = half_of_l2() / std::ptrdiff_t{sizeof(float)};
    x_floats = token_tiles(args.m) * tile_floats(depth);
    const int most = x_floats <= half ? 1 : std::max(1, static_cast<int>(half / floats));
    const int panels = (total_rows(args) + kPanelRows - 1) / kPanelRows;
    const int tasks = ((panels + most - 1) / most + num_threads - 1) / num_threads * num_threads;
    panels_per_task = (panels + tasks - 1) / tasks;
    worker_floats = (panels_per_task + args.num_weights - 1) * floats;
  }

  [[nodiscard]] std::ptrdiff_t floats(int num_threads) const { return x_floats + num_threads * worker_floats; }
};

// Packs the panels of rows [first, first + rows) of w into `memory`.
template <class Terms>
std::vector<Panel> pack_panels(const Product<Terms>& product, Block<Terms> block, int first, int rows, float* memory) {
  std::vector<Panel> panels;
  const int end = std::min(total_rows(product.args), first + rows);
  for (int begin = first; begin < end; begin += kPanelRows) {
    for_each_piece(product.args, begin, std::min(end, begin + kPanelRows), [&](const Piece& piece) {
      panels.push_back({piece, memory});
      pack(product, block, panels.back());
      memory += panel_floats(block.depth());
    });
  }
  return panels;
}

// `memory` has plan.floats().
template <class Terms>
void multiply_packed(ThreadPool& threads, float* memory, const PackedPlan& plan, const Product<Terms>& product) {
  const MatmulArgs& args = product.args;
  const int n = total_rows(args), rows_per_task = plan.panels_per_task * kPanelRows;
  for (int begin = 0; begin < product.k; begin += Terms::kBlock) {
    const Block<Terms> block{begin, std::min(product.k, begin + Terms::kBlock)};
    const PackedTokens<Terms> x(memory, product, block);
    threads.parallel_for(x.tiles(), [&](int index, int) { x.pack(index); });
    threads.parallel_for((n + rows_per_task - 1) / rows_per_task, [&](int index, int worker) {
      float* const mine = memory + plan.x_floats + worker * plan.worker_floats;
      const auto panels = pack_panels(product, block, index * rows_per_task, rows_per_task, mine);
      multiply_panels<Terms>(product, block, x, panels, n);
      if (block.end != product.k) return;
      for (const Panel& panel : panels) add_bias(args, panel.piece, n);
    });
  }
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

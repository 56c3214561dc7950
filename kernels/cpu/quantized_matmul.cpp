// y = x w^T with packed int4 and int8 weights (packed_weights.hpp), activations in F32 or rounded to 8 bits.
#include "kernels/cpu/quantized_matmul.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/preconditions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quantized_matmul.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include "kernels/cpu/packed_strip-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr int kTileTokens = HWY_TARGET <= HWY_AVX3 ? 8 : HWY_TARGET == HWY_AVX2 ? 4 : 2;
constexpr int kStripsAtOnce = HWY_TARGET <= HWY_AVX3 ? 2 : 1;
constexpr int kStreamBytes = 128 * 1024;           // of w per task
constexpr std::int64_t kInlineValues = 64 * 1024;  // products below which waking threads costs more than it saves

// Calls body(std::integral_constant<int, tokens>) for tokens in [1, kTileTokens].
template <int kTokens = kTileTokens, typename Body>
HWY_INLINE void with_tokens(int tokens, Body&& body) {
  if constexpr (kTokens > 1) {
    if (tokens < kTokens) return with_tokens<kTokens - 1>(tokens, body);
  }
  body(std::integral_constant<int, kTokens>());
}

// Cuts `tokens` into tiles of nearly equal size, none above kTileTokens: body(first token, tokens).
template <typename Body>
HWY_INLINE void for_each_tile(int tokens, Body&& body) {
  int tiles = (tokens + kTileTokens - 1) / kTileTokens;
  for (int token = 0; tiles > 0; --tiles) {
    const int size = (tokens - token + tiles - 1) / tiles;
    body(token, size);
    token += size;
  }
}

// What all tasks of one product share.
struct Product {
  const MatmulArgs& args;
  int y_width = 0;           // floats between tokens of y
  int block = 0;             // in-features whose sum is taken first
  const float* x = nullptr;  // [m, k] in the order of the groups
  QuantizedActivations quantized;

  [[nodiscard]] PackedLayout layout(int index) const {
    const WeightView& weight = args.weights[static_cast<std::size_t>(index)];
    return {weight.rows, args.k, weight.dtype, weight.group_size};
  }
};

void prepare_activations(ThreadPool& threads, Workspace& workspace, Product& product) {
  const MatmulArgs& args = product.args;
  const std::int32_t* permutation = args.weights[0].permutation;
  const auto values = static_cast<std::size_t>(args.m) * static_cast<std::size_t>(args.k);
  const auto for_each_token = [&](auto&& body) {
    if (static_cast<std::int64_t>(values) < kInlineValues) {
      for (int token = 0; token < args.m; ++token) body(token, 0);
    } else {
      threads.parallel_for(args.m, body);
    }
  };
  if (args.activations == ActivationMode::int8) {
    const std::size_t blocks = values / static_cast<std::size_t>(product.block);
    float* memory = workspace.floats(2 * blocks + values / 4);
    QuantizedActivations& to = product.quantized;
    to = {reinterpret_cast<std::int8_t*>(memory + 2 * blocks), memory, memory + blocks, args.k, product.block};
    for_each_token(
        [&](int token, int) { quantize_token(args.x + std::ptrdiff_t{token} * args.k, permutation, token, to); });
  } else if (permutation != nullptr) {
    float* to = workspace.floats(values);
    for_each_token([&](int token, int) {
      gather_token(args.x + std::ptrdiff_t{token} * args.k, permutation, args.k, to + std::ptrdiff_t{token} * args.k);
    });
    product.x = to;
  } else {
    product.x = args.x;
  }
}

// `count` (1 to kStripsAtOnce) strips from `strip` on.
template <class Dot, Dtype kDtype, int kCount>
void multiply_strips_at(const Product& product, int index, int strip, int column) {
  const MatmulArgs& args = product.args;
  const PackedLayout layout = product.layout(index);
  const auto bytes = static_cast<std::ptrdiff_t>(layout.strip_bytes());
  const auto* data = static_cast<const std::byte*>(args.weights[static_cast<std::size_t>(index)].data);
  const Strips<kCount> strips{data + strip * bytes, bytes};
  const float* bias = args.biases[static_cast<std::size_t>(index)];
  if (bias != nullptr) bias += strip * kStripRows;
  const int rows = std::min(kCount * kStripRows, layout.rows - strip * kStripRows);
  for_each_tile(args.m, [&](int token, int size) {
    with_tokens(size, [&](auto tokens) {
      StripTotals<tokens, Strips<kCount>::kVectors> totals;
      if (args.activations == ActivationMode::int8) {
        multiply_strips<Dot, kDtype>(layout, strips, product.quantized, token, totals);
      } else {
        multiply_strips<kDtype>(layout, strips, product.x + std::ptrdiff_t{token} * args.k, product.block, totals);
      }
      totals.write(args.y + std::ptrdiff_t{token} * product.y_width + column, product.y_width, bias, rows);
    });
  });
}

// Strips [begin, end) of one matrix.
template <class Dot, Dtype kDtype>
void multiply_strips_of(const Product& product, int index, int begin, int end, int column) {
  int strip = begin;
  for (; strip + kStripsAtOnce <= end; strip += kStripsAtOnce)
    multiply_strips_at<Dot, kDtype, kStripsAtOnce>(product, index, strip, column + strip * kStripRows);
  for (; strip < end; ++strip) multiply_strips_at<Dot, kDtype, 1>(product, index, strip, column + strip * kStripRows);
}

// Strips [begin, end) counted over all matrices.
template <class Dot>
void multiply_range(const Product& product, int begin, int end) {
  int base = 0, column = 0;
  for (int index = 0; index < product.args.num_weights; ++index) {
    const PackedLayout layout = product.layout(index);
    const int first = std::max(begin - base, 0), last = std::min(end - base, layout.strips());
    if (layout.dtype == Dtype::int4) {
      multiply_strips_of<Dot, Dtype::int4>(product, index, first, last, column);
    } else {
      multiply_strips_of<Dot, Dtype::int8>(product, index, first, last, column);
    }
    base += layout.strips();
    column += layout.rows;
  }
}

// Strips per task: about kStreamBytes, but as many tasks as make all threads end together, and none with a strip that
// is alone (kStripsAtOnce).
int choose_task_strips(int strips, std::size_t strip_bytes, int num_threads) {
  const int most = std::max(1, static_cast<int>(kStreamBytes / strip_bytes));
  const int tasks = (strips + most - 1) / most;
  const int even_tasks = (tasks + num_threads - 1) / num_threads * num_threads;
  const int even_strips = (strips + even_tasks - 1) / even_tasks;
  return (even_strips + kStripsAtOnce - 1) / kStripsAtOnce * kStripsAtOnce;
}

template <class Dot>
void multiply(ThreadPool& threads, const Product& product, int strips, std::int64_t values) {
  const int task_strips = choose_task_strips(strips, product.layout(0).strip_bytes(), threads.num_threads());
  const auto task = [&](int index, int) {
    multiply_range<Dot>(product, index * task_strips, std::min(strips, (index + 1) * task_strips));
  };
  const int tasks = (strips + task_strips - 1) / task_strips;
  if (values < kInlineValues) {
    for (int index = 0; index < tasks; ++index) task(index, 0);
  } else {
    threads.parallel_for(tasks, task);
  }
}

}  // namespace

void quantized_matmul_impl(ThreadPool& threads, Workspace& workspace, const MatmulArgs& args, int y_width) {
  Product product{args, y_width, activation_group_size(args.weights[0].group_size), nullptr, {}};
  int strips = 0;
  std::int64_t values = 0;
  for (int index = 0; index < args.num_weights; ++index) {
    strips += product.layout(index).strips();
    values += std::int64_t{product.layout(index).rows} * args.k * args.m;
  }
  prepare_activations(threads, workspace, product);
  with_dot([&](auto dot) { multiply<decltype(dot)>(threads, product, strips, values); });
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(quantized_matmul_impl);

namespace {

void check(const WeightView& weight, int k) {
  require(weight.dtype == Dtype::int4 || weight.dtype == Dtype::int8, "matmul",
          "packed and plain matrices do not share x");
  require(weight.group_size > 0 && weight.group_size % 8 == 0 && k % weight.group_size == 0, "matmul",
          "group_size is not a multiple of 8 that divides the in-features");
}

bool prepare_alike(const WeightView& a, const WeightView& b) {
  return a.dtype == b.dtype && a.group_size == b.group_size && a.permutation == b.permutation;
}

}  // namespace

void quantized_matmul(ThreadPool& threads, Workspace& workspace, const MatmulArgs& args) {
  require(args.activations != ActivationMode::bf16, "matmul", "packed weights take no BF16 activations");
  int y_width = 0;
  for (int i = 0; i < args.num_weights; ++i) {
    check(args.weights[static_cast<std::size_t>(i)], args.k);
    y_width += args.weights[static_cast<std::size_t>(i)].rows;
  }
  // Matrices that take x in one form go together.
  MatmulArgs part = args;
  for (std::size_t i = 0; i < static_cast<std::size_t>(args.num_weights);) {
    int rows = 0;
    part.num_weights = 0;
    do {
      const auto to = static_cast<std::size_t>(part.num_weights++);
      part.weights[to] = args.weights[i], part.biases[to] = args.biases[i];
      rows += args.weights[i++].rows;
    } while (i < static_cast<std::size_t>(args.num_weights) && prepare_alike(args.weights[i], part.weights[0]));
    HWY_DYNAMIC_DISPATCH(quantized_matmul_impl)(threads, workspace, part, y_width);
    part.y += rows;
  }
}

}  // namespace dculab::kernels::cpu
#endif

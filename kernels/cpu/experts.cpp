// Products of experts over rows sorted by expert, and the weighted sum of what they give.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/expert_kernels.hpp"
#include "kernels/cpu/for_each_token.hpp"
#include "kernels/cpu/preconditions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/experts.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:

#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

// sigmoid(x * shared_gate) of a token; 1 without a gate.
float shared_weight(const CombineExpertsArgs& args, int token) {
  if (args.shared_gate.data == nullptr) return 1.0F;
  const float* x = args.x + std::ptrdiff_t{token} * args.gate_width;
  Vector products = hn::Zero(F32());
  with_stored_type(args.shared_gate.data, args.shared_gate.dtype, [&](auto* gate) {
    for (int i = 0; i < args.gate_width; i += kLanes) {
      const int count = args.gate_width - i;
      products = hn::MulAdd(load_first(x + i, count), load_first(gate + i, count), products);
    }
  });
  return 1.0F / (1.0F + std::exp(-sum(products)));
}

}  // namespace

void combine_experts_impl(ThreadPool& threads, const CombineExpertsArgs& args) {
  for_each_token(threads, args.num_tokens, std::int64_t{args.width} * args.experts_per_token, [&](int token) {
    float* const out = args.out + std::ptrdiff_t{token} * args.width;
    const float shared = args.has_shared ? shared_weight(args, token) : 0.0F;
    const std::ptrdiff_t first = std::ptrdiff_t{token} * args.experts_per_token;
    for (int i = 0; i < args.width; i += kLanes) {
      const int count = args.width - i;
      Vector total = hn::Zero(F32());
      if (args.has_shared) total = hn::Mul(load_first(out + i, count), hn::Set(F32(), shared));
      for (std::ptrdiff_t choice = first; choice < first + args.experts_per_token; ++choice) {
        const float* y = args.y + std::ptrdiff_t{args.choice_rows[choice]} * args.width;
        total = hn::MulAdd(load_first(y + i, count), hn::Set(F32(), args.weights[choice]), total);
      }
      store_first(total, out + i, count);
    }
  });
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(combine_experts_impl);

namespace {

// Whether rows [begin, end) are those of neighbouring tokens, which a product can read where they lie.
[[nodiscard]] bool are_neighbours(const std::int32_t* row_tokens, int begin, int end) {
  return row_tokens[end - 1] - row_tokens[begin] == end - 1 - begin;
}

// x of the rows [begin, end) of an expert, [end - begin, k].
[[nodiscard]] const float* rows_of_x(ThreadPool& threads, const ExpertMatmulArgs& args, int begin, int end,
                                     Workspace& gathered) {
  if (args.row_tokens == nullptr) return args.x + std::ptrdiff_t{begin} * args.k;
  if (are_neighbours(args.row_tokens, begin, end)) return args.x + std::ptrdiff_t{args.row_tokens[begin]} * args.k;
  const auto k = static_cast<std::size_t>(args.k);
  float* const rows = gathered.floats(static_cast<std::size_t>(end - begin) * k);
  for_each_token(threads, end - begin, args.k, [&](int row) {
    const auto token = static_cast<std::size_t>(args.row_tokens[begin + row]);
    std::memcpy(rows + static_cast<std::size_t>(row) * k, args.x + token * k, k * sizeof(float));
  });
  return rows;
}

}  // namespace

void expert_matmul(ThreadPool& threads, Workspace& workspace, Workspace& gathered, const ExpertMatmulArgs& args) {
  MatmulArgs one;
  one.num_weights = args.num_weights, one.k = args.k, one.activations = args.activations;
  for (int expert = 0; expert < args.num_experts; ++expert) {
    const int begin = args.first_rows[expert], end = args.first_rows[expert + 1];
    if (begin == end) continue;
    int width = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(args.num_weights); ++i) {
      one.weights[i] = args.weights[i][expert];
      one.biases[i] = args.biases[i] == nullptr ? nullptr : static_cast<const float*>(args.biases[i][expert].data);
      width += one.weights[i].rows;
    }
    one.x = rows_of_x(threads, args, begin, end, gathered);
    one.y = args.y + std::ptrdiff_t{begin} * width;
    one.m = end - begin;
    matmul(threads, workspace, one);
  }
}

void combine_experts(ThreadPool& threads, const CombineExpertsArgs& args) {
  if (args.shared_gate.data != nullptr) {
    require_plain_floats(args.shared_gate.dtype, "combine_experts", "gate");
    require(args.has_shared && args.x != nullptr, "combine_experts", "a gate needs shared experts and their input");
  }
  HWY_DYNAMIC_DISPATCH(combine_experts_impl)(threads, args);
}

}  // namespace dculab::kernels::cpu
#endif

// The small kernels of a Llama layer.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/for_each_token.hpp"
#include "kernels/cpu/preconditions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layers.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:

#include "kernels/cpu/exponential-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

// residual += x; returns 1 / rms(residual).
float add_and_measure(const RmsNormArgs& args, const float* x, float* residual) {
  Vector squares = hn::Zero(F32());
  for (int i = 0; i < args.width; i += kLanes) {
    const int count = args.width - i;
    Vector value = load_first(residual + i, count);
    if (x != nullptr) {
      value = hn::Add(value, load_first(x + i, count));
      store_first(value, residual + i, count);
    }
    squares = hn::MulAdd(value, value, squares);
  }
  return 1.0F / std::sqrt(sum(squares) / static_cast<float>(args.width) + args.epsilon);
}

template <typename From, typename To>
void copy(const From* from, int count, To* to) {
  for (int i = 0; i < count; i += kLanes) store_first(load_first(from + i, count - i), to + i, count - i);
}

}  // namespace

void rms_norm_impl(ThreadPool& threads, const RmsNormArgs& args) {
  for_each_token(threads, args.num_tokens, args.width, [&](int token) {
    const std::ptrdiff_t offset = std::ptrdiff_t{token} * args.width;
    float* residual = args.residual + offset;
    const float scale = add_and_measure(args, args.x == nullptr ? nullptr : args.x + offset, residual);
    with_stored_type(args.weight.data, args.weight.dtype, [&](auto* weight) {
      for (int i = 0; i < args.width; i += kLanes) {
        const int count = args.width - i;
        const Vector normed = hn::Mul(load_first(residual + i, count), hn::Set(F32(), scale));
        store_first(hn::Mul(normed, load_first(weight + i, count)), args.out + offset + i, count);
      }
    });
  });
}

void embedding_impl(ThreadPool& threads, const EmbeddingArgs& args) {
  for_each_token(threads, args.num_tokens, args.width, [&](int token) {
    with_stored_type(args.table.data, args.table.dtype, [&](auto* table) {
      copy(table + std::ptrdiff_t{args.token_ids[token]} * args.width, args.width,
           args.out + std::ptrdiff_t{token} * args.width);
    });
  });
}

void silu_mul_impl(ThreadPool& threads, const SiluMulArgs& args) {
  constexpr int kExpCost = 4;  // vectors of plain work that one of exp is worth
  for_each_token(threads, args.num_tokens, std::int64_t{args.width} * kExpCost, [&](int token) {
    const float* gate = args.gate_up + std::ptrdiff_t{token} * 2 * args.width;
    const float* up = gate + args.width;
    float* out = args.out + std::ptrdiff_t{token} * args.width;
    const Vector one = hn::Set(F32(), 1.0F);
    for (int i = 0; i < args.width; i += kLanes) {
      const int count = args.width - i;
      const Vector g = load_first(gate + i, count);
      const Vector e = exponential(hn::Neg(g));
      store_first(hn::Mul(hn::Div(g, hn::Add(one, e)), load_first(up + i, count)), out + i, count);
    }
  });
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(rms_norm_impl);
HWY_EXPORT(embedding_impl);
HWY_EXPORT(silu_mul_impl);

void rms_norm(ThreadPool& threads, const RmsNormArgs& args) {
  require_plain_floats(args.weight.dtype, "rms_norm", "weight");
  HWY_DYNAMIC_DISPATCH(rms_norm_impl)(threads, args);
}
void embedding(ThreadPool& threads, const EmbeddingArgs& args) {
  require_plain_floats(args.table.dtype, "embedding", "table");
  HWY_DYNAMIC_DISPATCH(embedding_impl)(threads, args);
}
void silu_mul(ThreadPool& threads, const SiluMulArgs& args) { HWY_DYNAMIC_DISPATCH(silu_mul_impl)(threads, args); }

}  // namespace dculab::kernels::cpu
#endif

// The small kernels of the classic transformer, which BLOOM and Falcon are: LayerNorm and GELU, plain and as a gate.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/for_each_token.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/classic_layers.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:

#include "kernels/cpu/exponential-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr int kChunkValues = 4096;  // of gelu: what one task computes

// residual += added[0] + added[1], those that are given.
void add_to_residual(const LayerNormArgs& args, std::ptrdiff_t offset) {
  for (const float* added : args.added) {
    if (added == nullptr) continue;
    for (int i = 0; i < args.width; i += kLanes) {
      const int count = args.width - i;
      const Vector value =
          hn::Add(load_first(args.residual + offset + i, count), load_first(added + offset + i, count));
      store_first(value, args.residual + offset + i, count);
    }
  }
}

// The mean is taken before the squares, so that one far from zero does not cancel the variance away; what it is off by,
// from summing large values, is what the differences to it add up to.
void norm_token(const LayerNormArgs& args, const float* x, float* out) {
  const float width = static_cast<float>(args.width);
  Vector total = hn::Zero(F32());
  for (int i = 0; i < args.width; i += kLanes) total = hn::Add(total, load_first(x + i, args.width - i));
  const Vector mean = hn::Set(F32(), sum(total) / width);
  Vector rest = hn::Zero(F32()), squares = hn::Zero(F32());
  for (int i = 0; i < args.width; i += kLanes) {
    const Vector index = hn::Iota(F32(), static_cast<float>(i)),
                 centred = hn::Sub(load_first(x + i, args.width - i), mean);
    const Vector kept = hn::IfThenElseZero(hn::Lt(index, hn::Set(F32(), width)), centred);  // no lane beyond the row
    rest = hn::Add(rest, kept);
    squares = hn::MulAdd(kept, kept, squares);
  }
  const float off = sum(rest) / width;
  const float variance = std::max(0.0F, sum(squares) / width - off * off);
  const Vector scale = hn::Set(F32(), 1.0F / std::sqrt(variance + args.epsilon)), shift = hn::Set(F32(), off);
  for (int i = 0; i < args.width; i += kLanes) {
    const int count = args.width - i;
    const Vector normed = hn::Mul(hn::Sub(hn::Sub(load_first(x + i, count), mean), shift), scale);
    const Vector bias = args.bias == nullptr ? hn::Zero(F32()) : load_first(args.bias + i, count);
    store_first(hn::MulAdd(normed, load_first(args.weight + i, count), bias), out + i, count);
  }
}

// x * Phi(x) with Phi(-|x|) = erfc(z) / 2, z = |x| / sqrt 2, and erfc(z) = t q(t) exp(-z^2), t = 1 / (1 + 0.35 z).
// q is a minimax fit of degree 9 to erfc(z) exp(z^2) / t on 0 < t <= 1, off by at most 4.6e-8 of the value.
HWY_INLINE Vector gelu_erf(Vector x) {
  constexpr float kQ[] = {1.974663441e-1F, 1.974687182e-1F,  1.852776583e-1F, 1.626215045e-1F,  1.160249341e-1F,
                          1.360547555e-1F, -7.719233827e-2F, 2.107608172e-1F, -1.678440317e-1F, 3.936159012e-2F};
  const auto constant = [](float value) DCULAB_INLINE { return hn::Set(F32(), value); };
  const Vector z = hn::Mul(hn::Abs(x), constant(0.70710678F));
  const Vector t = hn::Div(constant(1.0F), hn::MulAdd(constant(0.35F), z, constant(1.0F)));
  Vector q = constant(kQ[9]);
  for (int i = 8; i >= 0; --i) q = hn::MulAdd(q, t, constant(kQ[i]));
  const Vector tail =
      hn::Mul(hn::Mul(hn::Mul(constant(0.5F), t), q), exponential(hn::Mul(hn::Mul(constant(-0.5F), x), x)));
  const Vector below = hn::Mul(x, tail);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(F32())), below, hn::Sub(x, below));
}

// x / 2 (1 + tanh(a)) = x / (1 + exp(-2 a)), a = sqrt(2 / pi) (x + 0.044715 x^3)
HWY_INLINE Vector gelu_tanh(Vector x) {
  constexpr float kTwiceRoot = 1.5957691216F;  // 2 sqrt(2 / pi)
  const Vector cube = hn::Mul(hn::Mul(x, x), x);
  const Vector angle = hn::Mul(hn::Set(F32(), -kTwiceRoot), hn::MulAdd(hn::Set(F32(), 0.044715F), cube, x));
  return hn::Div(x, hn::Add(hn::Set(F32(), 1.0F), exponential(angle)));
}

template <GeluKind kKind>
void gelu_values(const float* x, int count, float* out) {
  for (int i = 0; i < count; i += kLanes) {
    const Vector value = load_first(x + i, count - i);
    store_first(kKind == GeluKind::erf ? gelu_erf(value) : gelu_tanh(value), out + i, count - i);
  }
}

template <GeluKind kKind>
void gelu_gated(const float* gate, const float* up, int count, float* out) {
  for (int i = 0; i < count; i += kLanes) {
    const Vector value = load_first(gate + i, count - i);
    const Vector opened = kKind == GeluKind::erf ? gelu_erf(value) : gelu_tanh(value);
    store_first(hn::Mul(opened, load_first(up + i, count - i)), out + i, count - i);
  }
}

constexpr int kExpCost = 4;  // vectors of plain work that one of exp and a polynomial is worth

}  // namespace

void gelu_mul_impl(ThreadPool& threads, const GeluMulArgs& args) {
  for_each_token(threads, args.num_tokens, std::int64_t{args.width} * kExpCost, [&](int token) {
    const float* gate = args.gate_up + std::ptrdiff_t{token} * 2 * args.width;
    float* out = args.out + std::ptrdiff_t{token} * args.width;
    if (args.kind == GeluKind::erf)
      gelu_gated<GeluKind::erf>(gate, gate + args.width, args.width, out);
    else
      gelu_gated<GeluKind::tanh>(gate, gate + args.width, args.width, out);
  });
}

void layer_norm_impl(ThreadPool& threads, const LayerNormArgs& args) {
  for_each_token(threads, args.num_tokens, std::int64_t{2} * args.width, [&](int token) {
    const std::ptrdiff_t offset = std::ptrdiff_t{token} * args.width;
    if (args.residual != nullptr) add_to_residual(args, offset);
    norm_token(args, (args.residual != nullptr ? args.residual : args.x) + offset, args.out + offset);
  });
}

void gelu_impl(ThreadPool& threads, const GeluArgs& args) {
  const auto chunks = static_cast<int>((args.count + kChunkValues - 1) / kChunkValues);
  const std::int64_t each = std::min<std::int64_t>(args.count, kChunkValues) * kExpCost;
  for_each_token(threads, chunks, each, [&](int chunk) {
    const std::int64_t begin = std::int64_t{chunk} * kChunkValues;
    const int count = static_cast<int>(std::min<std::int64_t>(kChunkValues, args.count - begin));
    if (args.kind == GeluKind::erf) {
      gelu_values<GeluKind::erf>(args.x + begin, count, args.out + begin);
    } else {
      gelu_values<GeluKind::tanh>(args.x + begin, count, args.out + begin);
    }
  });
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(layer_norm_impl);
HWY_EXPORT(gelu_impl);
HWY_EXPORT(gelu_mul_impl);

void layer_norm(ThreadPool& threads, const LayerNormArgs& args) {
  HWY_DYNAMIC_DISPATCH(layer_norm_impl)(threads, args);
}
void gelu_mul(ThreadPool& threads, const GeluMulArgs& args) { HWY_DYNAMIC_DISPATCH(gelu_mul_impl)(threads, args); }
void gelu(ThreadPool& threads, const GeluArgs& args) { HWY_DYNAMIC_DISPATCH(gelu_impl)(threads, args); }

}  // namespace dculab::kernels::cpu
#endif

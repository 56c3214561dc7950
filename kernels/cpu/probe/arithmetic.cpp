#include "kernels/cpu/probe/arithmetic.hpp"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/probe/arithmetic.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/dot4-inl.hpp"
#include "kernels/cpu/matmul_terms-inl.hpp"

#ifndef DCULAB_PROBE_ARITHMETIC_ONCE
#define DCULAB_PROBE_ARITHMETIC_ONCE
namespace dculab::kernels::cpu {

// Twelve independent sums hide the latency of a multiply-add (4 cycles, 2 per cycle) and fit 16 registers.
inline constexpr std::size_t kSums = 12;

// The weights a round loads: at most kSums vectors of 64 bytes, kept in L1.
struct alignas(64) Weights {
  std::uint16_t halves[kSums * 32];
};

}  // namespace dculab::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 64 bytes per vector, so that a round's weights have a known size.
template <typename T>
using Tag = hn::CappedTag<T, 64 / sizeof(T)>;
constexpr Tag<float> kF32;
constexpr Tag<std::int32_t> kI32;
constexpr hn::Rebind<hwy::float16_t, Tag<float>> kF16;
constexpr hn::Rebind<hwy::bfloat16_t, Tag<float>> kBf16;
constexpr Tag<std::int16_t> kI16;
constexpr hn::Rebind<std::int8_t, Tag<std::int16_t>> kI8;

// Runs step(weights, quad, four sums) for the three quads of sums; returns a value that depends on all of them.
template <class D, class Step>
HWY_INLINE double run_rounds(D d, std::int64_t rounds, const Weights& weights, Step step) {
  const auto start = [d](int i) HWY_ATTR { return hn::Set(d, static_cast<hn::TFromD<D>>(i)); };
  auto s0 = start(0), s1 = start(1), s2 = start(2), s3 = start(3), s4 = start(4), s5 = start(5), s6 = start(6),
       s7 = start(7), s8 = start(8), s9 = start(9), s10 = start(10), s11 = start(11);
  const Weights* w = &weights;
  for (std::int64_t round = 0; round < rounds; ++round) {
    asm volatile("" : "+r"(w) : : "memory");  // the compiler must load the weights again
    step(*w, 0, s0, s1, s2, s3);
    step(*w, 1, s4, s5, s6, s7);
    step(*w, 2, s8, s9, s10, s11);
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7))),
              hn::Add(hn::Add(s8, s9), hn::Add(s10, s11)));
  HWY_ALIGN hn::TFromD<D> lanes[64 / sizeof(hn::TFromD<D>)];
  hn::Store(sum, d, lanes);
  double total = 0;  // int32 lanes may have wrapped, which is harmless, but must not wrap again as plain numbers
  for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) total += static_cast<double>(lanes[lane]);
  return total;
}

template <class D16>
HWY_INLINE auto load_widened(D16 d, const Weights& w, std::size_t vector) {
  const auto* values = reinterpret_cast<const hn::TFromD<D16>*>(w.halves) + vector * hn::Lanes(d);
  return hn::PromoteTo(kF32, hn::Load(d, values));
}

double run_f32(std::int64_t rounds, const Weights& weights) {
  const auto x = hn::Set(kF32, 1e-3F);
  const auto y = hn::Set(kF32, 1.25F);
  return run_rounds(kF32, rounds, weights,
                    [=](const Weights&, std::size_t, auto& a, auto& b, auto& c, auto& d) HWY_ATTR {
                      a = hn::MulAdd(x, y, a);
                      b = hn::MulAdd(x, y, b);
                      c = hn::MulAdd(x, y, c);
                      d = hn::MulAdd(x, y, d);
                    });
}

template <class D16>
HWY_INLINE double run_widened(D16 d16, std::int64_t rounds, const Weights& weights) {
  const auto x = hn::Set(kF32, 1e-3F);
  return run_rounds(kF32, rounds, weights,
                    [=](const Weights& w, std::size_t quad, auto& a, auto& b, auto& c, auto& d) HWY_ATTR {
                      a = hn::MulAdd(load_widened(d16, w, 4 * quad), x, a);
                      b = hn::MulAdd(load_widened(d16, w, 4 * quad + 1), x, b);
                      c = hn::MulAdd(load_widened(d16, w, 4 * quad + 2), x, c);
                      d = hn::MulAdd(load_widened(d16, w, 4 * quad + 3), x, d);
                    });
}

template <class D16>
HWY_INLINE double run_widened_tile(D16 d16, std::int64_t rounds, const Weights& weights) {
  const auto x = hn::Set(kF32, 1e-3F);
  return run_rounds(kF32, rounds, weights,
                    [=](const Weights& w, std::size_t quad, auto& a, auto& b, auto& c, auto& d) HWY_ATTR {
                      const auto wide = load_widened(d16, w, quad);
                      a = hn::MulAdd(wide, x, a);
                      b = hn::MulAdd(wide, x, b);
                      c = hn::MulAdd(wide, x, c);
                      d = hn::MulAdd(wide, x, d);
                    });
}

double run_f16(std::int64_t rounds, const Weights& weights) { return run_widened(kF16, rounds, weights); }
double run_bf16(std::int64_t rounds, const Weights& weights) { return run_widened(kBf16, rounds, weights); }
double run_f16_tile(std::int64_t rounds, const Weights& weights) { return run_widened_tile(kF16, rounds, weights); }
double run_bf16_tile(std::int64_t rounds, const Weights& weights) { return run_widened_tile(kBf16, rounds, weights); }

// As packed products with BF16 activations sum them, each vector of weights for four rows.
template <class Terms>
HWY_INLINE double run_pairs(std::int64_t rounds, const Weights& weights) {
  const auto pairs = [](const Weights& w, std::size_t vector)
                         HWY_ATTR { return load(reinterpret_cast<const Bf16Pair*>(w.halves) + vector * kLanes); };
  const Vector x = pairs(weights, 3);
  return run_rounds(F32(), rounds, weights,
                    [=](const Weights& w, std::size_t quad, auto& a, auto& b, auto& c, auto& d) HWY_ATTR {
                      const Vector both = pairs(w, quad);
                      a = Terms::add(x, both, a);
                      b = Terms::add(x, both, b);
                      c = Terms::add(x, both, c);
                      d = Terms::add(x, both, d);
                    });
}

double run_bf16_dot(std::int64_t rounds, const Weights& weights) {
  double sum = 0;
  with_packed_pairs([&](auto terms) { sum = run_pairs<typename decltype(terms)::Packed>(rounds, weights); });
  return sum;
}

// Of a lane at once.
double count_bf16_products() {
  int words = 0;
  with_packed_pairs([&](auto terms) { words = decltype(terms)::kWords; });
  return 2.0 / words;
}

double run_int8_dot(std::int64_t rounds, const Weights& weights) {
  const auto load = [](const Weights& w, std::size_t vector) HWY_ATTR {
    return hn::PromoteTo(kI16, hn::Load(kI8, reinterpret_cast<const std::int8_t*>(w.halves) + vector * hn::Lanes(kI8)));
  };
  const auto x = load(weights, 0);
  return run_rounds(kI32, rounds, weights,
                    [=](const Weights& w, std::size_t quad, auto& a, auto& b, auto& c, auto& d) HWY_ATTR {
                      a = hn::ReorderWidenMulAccumulate(kI32, load(w, 2 * quad), x, a, b);
                      c = hn::ReorderWidenMulAccumulate(kI32, load(w, 2 * quad + 1), x, c, d);
                    });
}

// As products with int4 weights sum them: weights as bytes from L1, each vector for four rows of activations. One load
// for every dot would measure how many instructions a core can issue, which a neighbour on the same core halves.
template <class Dot>
HWY_INLINE double run_dot4(std::int64_t rounds, const Weights& weights) {
  constexpr int kSumsAtOnce = static_cast<int>(kSums), kRows = 4;
  constexpr int kChunk = std::min(Dot::kPartialDots, 64);
  Words x[kRows];
  unrolled<kRows>([&](auto row) DCULAB_INLINE { x[row] = hn::Set(U32(), 0x017F0381U + row); });
  Sums sums[kSums];
  unrolled<kSumsAtOnce>([&](auto i) DCULAB_INLINE { sums[i] = hn::Zero(I32()); });
  const Weights* w = &weights;
  for (std::int64_t round = 0; round < rounds; round += kChunk) {
    typename Dot::Partial partial[kSums];
    unrolled<kSumsAtOnce>([&](auto i) DCULAB_INLINE { partial[i] = Dot::zero(); });
    const auto steps = std::min<std::int64_t>(kChunk, rounds - round);
    for (std::int64_t step = 0; step < steps; ++step) {
      asm volatile("" : "+r"(w) : : "memory");
      unrolled<kSumsAtOnce / kRows>([&](auto vector) DCULAB_INLINE {
        const auto* words = reinterpret_cast<const std::uint32_t*>(w->halves) + vector * kLanes;
        const Words bytes = hn::LoadU(U32(), words);
        unrolled<kRows>([&](auto row) DCULAB_INLINE {
          auto& mine = partial[vector * kRows + row];
          mine = Dot::dot(mine, bytes, x[row]);
        });
      });
    }
    unrolled<kSumsAtOnce>([&](auto i) DCULAB_INLINE { sums[i] = hn::Add(sums[i], Dot::total(partial[i])); });
  }
  Sums all = hn::Zero(I32());
  unrolled<kSumsAtOnce>([&](auto i) DCULAB_INLINE { all = hn::Xor(all, sums[i]); });
  return static_cast<double>(hn::GetLane(all));
}

double run_byte_dot(std::int64_t rounds, const Weights& weights) {
  return with_dot([&](auto dot) { return run_dot4<decltype(dot)>(rounds, weights); });
}

std::size_t count_f32_lanes() { return hn::Lanes(kF32); }

const char* name_target() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace dculab::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {
namespace {

HWY_EXPORT(run_f32);
HWY_EXPORT(run_f16);
HWY_EXPORT(run_bf16);
HWY_EXPORT(run_f16_tile);
HWY_EXPORT(run_bf16_tile);
HWY_EXPORT(run_bf16_dot);
HWY_EXPORT(run_int8_dot);
HWY_EXPORT(run_byte_dot);
HWY_EXPORT(count_f32_lanes);
HWY_EXPORT(count_bf16_products);
HWY_EXPORT(name_target);

// Values in [1, 2) with varying mantissas, whatever the format: no denormals, and bits that toggle as real ones do.
Weights make_weights(Arithmetic arithmetic) {
  const bool is_f16 = arithmetic == Arithmetic::f16_fma || arithmetic == Arithmetic::f16_tile_fma;
  const std::uint32_t one = is_f16 ? 0x3C00U : 0x3F80U;
  const std::uint32_t mantissa = is_f16 ? 0x3FFU : 0x7FU;
  Weights weights{};
  std::uint32_t state = 1;
  for (std::uint16_t& half : weights.halves) {
    state = state * 1664525U + 1013904223U;
    half = static_cast<std::uint16_t>(one | ((state >> 16) & mantissa));
  }
  return weights;
}

double run_kernel(Arithmetic arithmetic, std::int64_t rounds, const Weights& weights) {
  switch (arithmetic) {
    case Arithmetic::f32_fma:
      return HWY_DYNAMIC_DISPATCH(run_f32)(rounds, weights);
    case Arithmetic::f16_fma:
      return HWY_DYNAMIC_DISPATCH(run_f16)(rounds, weights);
    case Arithmetic::f16_tile_fma:
      return HWY_DYNAMIC_DISPATCH(run_f16_tile)(rounds, weights);
    case Arithmetic::bf16_fma:
      return HWY_DYNAMIC_DISPATCH(run_bf16)(rounds, weights);
    case Arithmetic::bf16_tile_fma:
      return HWY_DYNAMIC_DISPATCH(run_bf16_tile)(rounds, weights);
    case Arithmetic::bf16_dot:
      return HWY_DYNAMIC_DISPATCH(run_bf16_dot)(rounds, weights);
    case Arithmetic::int8_dot:
      return HWY_DYNAMIC_DISPATCH(run_int8_dot)(rounds, weights);
    case Arithmetic::byte_dot:
      return HWY_DYNAMIC_DISPATCH(run_byte_dot)(rounds, weights);
  }
  return 0;
}

}  // namespace

ArithmeticDescription describe(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::f32_fma:
      return {"f32_fma", Dtype::f32, "F32 multiply-add, operands in registers"};
    case Arithmetic::f16_fma:
      return {"f16_fma", Dtype::f16, "F16 from L1, widened to F32 for every multiply-add"};
    case Arithmetic::f16_tile_fma:
      return {"f16_tile_fma", Dtype::f16, "F16 from L1, widened to F32 once for four multiply-adds"};
    case Arithmetic::bf16_fma:
      return {"bf16_fma", Dtype::bf16, "BF16 from L1, widened to F32 for every multiply-add"};
    case Arithmetic::bf16_tile_fma:
      return {"bf16_tile_fma", Dtype::bf16, "BF16 from L1, widened to F32 once for four multiply-adds"};
    case Arithmetic::bf16_dot:
      return {"bf16_dot", Dtype::bf16, "pairs of BF16 to F32 sums, as matmuls with BF16 activations form them"};
    case Arithmetic::int8_dot:
      return {"int8_dot", Dtype::int8,
              "int8 from L1, widened to int16, pairs to int32 sums by Highway's ReorderWidenMulAccumulate"};
    case Arithmetic::byte_dot:
      return {"byte_dot", Dtype::int8, "sums of four products of bytes, as matmuls with 8-bit activations form them"};
  }
  return {"", Dtype::f32, ""};
}

FlopCount run_arithmetic(Arithmetic arithmetic, std::int64_t rounds) {
  const Weights weights = make_weights(arithmetic);
  [[maybe_unused]] volatile double sink = run_kernel(arithmetic, rounds, weights);
  // Per quad of sums, int8_dot does two steps of 2 * lanes pairs where the others do four of lanes: the same count.
  const auto lanes = static_cast<double>(HWY_DYNAMIC_DISPATCH(count_f32_lanes)());
  const double products =  // of a lane at once
      arithmetic == Arithmetic::byte_dot   ? 4.0
      : arithmetic == Arithmetic::bf16_dot ? 2.0
                                           : 1.0;
  return FlopCount(2.0 * products * static_cast<double>(kSums) * lanes * static_cast<double>(rounds));
}

std::string_view arithmetic_target() { return HWY_DYNAMIC_DISPATCH(name_target)(); }

}  // namespace dculab::kernels::cpu
#endif

// Strips of packed weights times a few rows of x, read where they lie.
//
// Lanes are out-features. The sum over one block of in-features (activation_group_size) is taken first, with integers
// or in the order of k; blocks are added in order. Whatever the tiling, an element of y has the same bits.
#if defined(DCULAB_KERNELS_CPU_PACKED_STRIP_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_PACKED_STRIP_INL_HPP_
#undef DCULAB_KERNELS_CPU_PACKED_STRIP_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_PACKED_STRIP_INL_HPP_
#endif

#include "kernels/cpu/dot4-inl.hpp"
#include "kernels/cpu/packed_weights.hpp"
#include "kernels/cpu/quantized_activations-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

constexpr int kStripRows = PackedLayout::kStripRows;
constexpr int kStripVectors = kStripRows / kLanes;
constexpr int kToL1Bytes = 2048, kToL2Bytes = 4096;  // how far ahead each is asked for

HWY_INLINE Words load_words(const std::byte* from) {
  return hn::LoadU(U32(), reinterpret_cast<const std::uint32_t*>(from));
}
// Four bytes in every lane.
HWY_INLINE Words broadcast_word(const std::int8_t* from) {
  std::uint32_t word;
  std::memcpy(&word, from, sizeof word);
  return hn::Set(U32(), word);
}

// One strip, or two side by side where registers are plenty: an x once loaded serves both, and two streams of addresses
// keep more of the memory busy than one.
template <int kCount>
struct Strips {
  static constexpr int kVectors = kCount * kStripVectors;

  const std::byte* first;
  std::ptrdiff_t bytes;  // of one strip

  // Vector v of what lies at `offset` in each strip, `vector_bytes` apart within one.
  template <int v>
  [[nodiscard]] HWY_INLINE const std::byte* at(std::ptrdiff_t offset, int vector_bytes) const {
    return first + (v / kStripVectors) * bytes + offset + v % kStripVectors * vector_bytes;
  }
  // Asks for what will be read later, of these strips or of those behind them. L2 is asked first, for a core waits for
  // more lines there than L1 can.
  HWY_INLINE void prefetch(std::ptrdiff_t offset) const {
    const std::ptrdiff_t near = ahead(offset + kToL1Bytes), far = ahead(offset + kToL2Bytes);
    unrolled<kCount>([&](auto strip) DCULAB_INLINE {
      prefetch_to_l1(first + strip * bytes + near);
      prefetch_to_l2(first + strip * bytes + far);
    });
  }

 private:
  [[nodiscard]] HWY_INLINE std::ptrdiff_t ahead(std::ptrdiff_t offset) const {
    return offset < bytes ? offset : offset + (kCount - 1) * bytes;
  }
};

// Scales and zero points of one group.
template <int kVectors>
struct GroupHeader {
  Vector scale[kVectors], zero[kVectors];

  template <int kCount>
  HWY_INLINE GroupHeader(const Strips<kCount>& strips, std::ptrdiff_t offset) {
    const hn::Rebind<std::uint8_t, F32> u8;
    unrolled<kVectors>([&](auto v) DCULAB_INLINE {
      scale[v] = load(reinterpret_cast<const F16*>(strips.template at<v>(offset, 2 * kLanes)));
      const auto* zeros = reinterpret_cast<const std::uint8_t*>(strips.template at<v>(offset + 2 * kStripRows, kLanes));
      zero[v] = hn::ConvertTo(F32(), hn::PromoteTo(I32(), hn::LoadU(u8, zeros)));
    });
  }
};

// y[kTokens, kVectors * lanes].
template <int kTokens, int kVectors>
class StripTotals {
 public:
  HWY_INLINE StripTotals() {
    unrolled<kTokens * kVectors>([&](auto i) DCULAB_INLINE { totals_[i] = hn::Zero(F32()); });
  }
  [[nodiscard]] HWY_INLINE Vector& at(int token, int vector) { return totals_[token * kVectors + vector]; }

  // `rows` of the strips exist; bias may be null.
  HWY_INLINE void write(float* y, std::ptrdiff_t y_stride, const float* bias, int rows) const {
    for (int v = 0; v < kVectors && v * kLanes < rows; ++v) {
      const int left = rows - v * kLanes;
      const Vector add = bias != nullptr ? load_first(bias + v * kLanes, left) : hn::Zero(F32());
      for (int token = 0; token < kTokens; ++token) {
        const Vector total = totals_[token * kVectors + v];
        store_first(bias != nullptr ? hn::Add(total, add) : total, y + token * y_stride + v * kLanes, left);
      }
    }
  }

 private:
  Vector totals_[kTokens * kVectors];
};

// sums[kTokens, rows] = w[rows, block] * x[kTokens, block]^T for int4 weights at `offset` of the strips.
template <class Dot, int kTokens, int kCount>
HWY_INLINE void dot_int4_block(const Strips<kCount>& strips, std::ptrdiff_t offset, const std::int8_t* x,
                               std::ptrdiff_t x_stride, int block, Sums* sums) {
  constexpr int kVectors = Strips<kCount>::kVectors, kSums = kTokens * kVectors;
  constexpr int kChains = kSums <= 2 ? 2 : 1;  // so few sums wait for each other: low and high nibbles apart
  constexpr int kPartialValues = 4 * Dot::kPartialDots;
  const Words mask = hn::Set(U32(), 0x0F0F0F0FU);
  for (int begin = 0; begin < block; begin += kPartialValues) {
    typename Dot::Partial partial[kChains * kSums];
    unrolled<kChains * kSums>([&](auto i) DCULAB_INLINE { partial[i] = Dot::zero(); });
    const int end = std::min(block, begin + kPartialValues);
    for (int k = begin; k < end; k += 8, offset += PackedLayout::kStepBytes) {
      strips.prefetch(offset);
      // One half of the nibbles after the other: both at once do not fit in 16 registers.
      const auto add_half = [&](auto from, auto&& nibbles) DCULAB_INLINE {
        constexpr int kFirst = kChains == 2 && from == 4 ? kSums : 0;
        Words weights[kVectors];
        unrolled<kVectors>([&](auto v) DCULAB_INLINE {
          weights[v] = hn::And(nibbles(load_words(strips.template at<v>(offset, 4 * kLanes))), mask);
        });
        unrolled<kTokens>([&](auto t) DCULAB_INLINE {
          const Words values = broadcast_word(x + t * x_stride + k + from);
          unrolled<kVectors>([&](auto v) DCULAB_INLINE {
            auto& mine = partial[kFirst + t * kVectors + v];
            mine = Dot::dot(mine, weights[v], values);
          });
        });
      };
      add_half(std::integral_constant<int, 0>(), [](Words both) DCULAB_INLINE { return both; });
      add_half(std::integral_constant<int, 4>(), [](Words both) DCULAB_INLINE { return hn::ShiftRight<4>(both); });
    }
    unrolled<kChains * kSums>(
        [&](auto i) DCULAB_INLINE { sums[i % kSums] = hn::Add(sums[i % kSums], Dot::total(partial[i])); });
  }
}

// The same for int8 weights; the sums are those of q - Dot::kInt8Offset.
template <class Dot, int kTokens, int kCount>
HWY_INLINE void dot_int8_block(const Strips<kCount>& strips, std::ptrdiff_t offset, const std::int8_t* x,
                               std::ptrdiff_t x_stride, int block, Sums* sums) {
  constexpr int kVectors = Strips<kCount>::kVectors;
  for (int k = 0; k < block; k += 4, offset += PackedLayout::kStepBytes) {
    strips.prefetch(offset);
    typename Dot::Int8Weights weights[kVectors];
    unrolled<kVectors>([&](auto v) DCULAB_INLINE {
      weights[v] = Dot::int8_weights(load_words(strips.template at<v>(offset, 4 * kLanes)));
    });
    unrolled<kTokens>([&](auto t) DCULAB_INLINE {
      const Words values = broadcast_word(x + t * x_stride + k);
      unrolled<kVectors>([&](auto v) DCULAB_INLINE {
        Sums& mine = sums[t * kVectors + v];
        mine = Dot::int8_dot(mine, weights[v], values);
      });
    });
  }
}

// total += scale * x_scale * (sum - zero * x_sum). The difference is an integer below 2^24, hence exact in F32.
template <int kTokens, int kVectors>
HWY_INLINE void add_block(const Sums* sums, const GroupHeader<kVectors>& group, float zero_offset,
                          const QuantizedActivations& x, int token, int begin, StripTotals<kTokens, kVectors>& totals) {
  unrolled<kTokens>([&](auto t) DCULAB_INLINE {
    const std::ptrdiff_t block = x.block_index(token + t, begin);
    const Vector x_scale = hn::Set(F32(), x.scales[block]), x_sum = hn::Set(F32(), x.sums[block]);
    unrolled<kVectors>([&](auto v) DCULAB_INLINE {
      const Vector zero = hn::Sub(group.zero[v], hn::Set(F32(), zero_offset));
      const Vector sum = hn::NegMulAdd(zero, x_sum, hn::ConvertTo(F32(), sums[t * kVectors + v]));
      totals.at(t, v) = hn::MulAdd(sum, hn::Mul(group.scale[v], x_scale), totals.at(t, v));
    });
  });
}

// Strips times 8-bit activations of tokens [token, token + kTokens).
template <class Dot, Dtype kDtype, int kTokens, int kCount>
HWY_INLINE void multiply_strips(const PackedLayout& layout, const Strips<kCount>& strips, const QuantizedActivations& x,
                                int token, StripTotals<kTokens, Strips<kCount>::kVectors>& totals) {
  constexpr int kVectors = Strips<kCount>::kVectors;
  std::ptrdiff_t header = 0, w = static_cast<std::ptrdiff_t>(layout.header_bytes());
  const int block_bytes = x.block / layout.step() * PackedLayout::kStepBytes;
  for (int group_begin = 0; group_begin < layout.columns; group_begin += layout.group_size) {
    strips.prefetch(header);
    const GroupHeader<kVectors> group(strips, header);
    header += PackedLayout::kGroupBytes;
    for (int begin = group_begin; begin < group_begin + layout.group_size; begin += x.block, w += block_bytes) {
      Sums sums[kTokens * kVectors];
      unrolled<kTokens * kVectors>([&](auto i) DCULAB_INLINE { sums[i] = hn::Zero(I32()); });
      if constexpr (kDtype == Dtype::int4) {
        dot_int4_block<Dot, kTokens>(strips, w, x.row(token) + begin, x.k, x.block, sums);
        add_block(sums, group, 0.0F, x, token, begin, totals);
      } else {
        dot_int8_block<Dot, kTokens>(strips, w, x.row(token) + begin, x.k, x.block, sums);
        add_block(sums, group, Dot::kInt8Offset, x, token, begin, totals);
      }
    }
  }
}

// In-feature `kIndex` of the 8 (int4) or 4 (int8) in a vector of words, minus its zero point: exact.
template <Dtype kDtype, int kIndex>
HWY_INLINE Vector widened(Words words, Vector zero) {
  constexpr int kShift = 8 * (kIndex % 4) + 4 * (kIndex / 4);
  const Words q = hn::And(hn::ShiftRight<kShift>(words), hn::Set(U32(), kDtype == Dtype::int4 ? 0xFU : 0xFFU));
  return hn::Sub(hn::ConvertTo(F32(), hn::BitCast(I32(), q)), zero);
}

// Strips times F32 activations x[kTokens, columns] in the order of the groups.
template <Dtype kDtype, int kTokens, int kCount>
HWY_INLINE void multiply_strips(const PackedLayout& layout, const Strips<kCount>& strips, const float* x, int block,
                                StripTotals<kTokens, Strips<kCount>::kVectors>& totals) {
  constexpr int kVectors = Strips<kCount>::kVectors;
  constexpr int kStep = kDtype == Dtype::int4 ? 8 : 4;
  std::ptrdiff_t header = 0, w = static_cast<std::ptrdiff_t>(layout.header_bytes());
  for (int group_begin = 0; group_begin < layout.columns; group_begin += layout.group_size) {
    strips.prefetch(header);
    const GroupHeader<kVectors> group(strips, header);
    header += PackedLayout::kGroupBytes;
    for (int begin = group_begin; begin < group_begin + layout.group_size; begin += block) {
      Vector sums[kTokens * kVectors];
      unrolled<kTokens * kVectors>([&](auto i) DCULAB_INLINE { sums[i] = hn::Zero(F32()); });
      for (int k = begin; k < begin + block; k += kStep, w += PackedLayout::kStepBytes) {
        strips.prefetch(w);
        Words words[kVectors];
        unrolled<kVectors>([&](auto v) DCULAB_INLINE { words[v] = load_words(strips.template at<v>(w, 4 * kLanes)); });
        unrolled<kStep>([&](auto i) DCULAB_INLINE {
          Vector weights[kVectors];
          unrolled<kVectors>([&](auto v) DCULAB_INLINE { weights[v] = widened<kDtype, i>(words[v], group.zero[v]); });
          unrolled<kTokens>([&](auto t) DCULAB_INLINE {
            const Vector value = hn::Set(F32(), x[t * layout.columns + k + i]);
            unrolled<kVectors>([&](auto v) DCULAB_INLINE {
              Vector& mine = sums[t * kVectors + v];
              mine = hn::MulAdd(weights[v], value, mine);
            });
          });
        });
      }
      unrolled<kTokens>([&](auto t) DCULAB_INLINE {
        unrolled<kVectors>([&](auto v) DCULAB_INLINE {
          totals.at(t, v) = hn::MulAdd(sums[t * kVectors + v], group.scale[v], totals.at(t, v));
        });
      });
    }
  }
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

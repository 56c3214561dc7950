// Do the references that move K and V put every value where the layout says, as it is stored, and nothing elsewhere?
#include <cmath>
#include <set>

#include "kernels/number_format.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels {
namespace {

constexpr Dtype kCacheDtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2};

// Four blocks of three tokens, two KV heads of four values; every byte 0xFF (NaN) until it is written.
struct SmallCache {
  std::vector<std::byte> k, v;
  KvCacheView view;

  explicit SmallCache(Dtype dtype)
      : k(static_cast<std::size_t>(4 * 2 * 3 * 4 * bits(dtype) / 8), std::byte{0xFF}), v(k) {
    view = {k.data(), v.data(), dtype, 4, 2, 3, 4, Fp8KvScales{0.5F, 2.0F}};
  }
  [[nodiscard]] double k_at(int block, int head, int offset, int d) const {
    return reference::load_value(k.data(), view.dtype, index(block, head, offset, d));
  }
  [[nodiscard]] double v_at(int block, int head, int offset, int d) const {
    return reference::load_value(v.data(), view.dtype, index(block, head, offset, d));
  }
  // Slots with a value in any head.
  [[nodiscard]] std::set<int> written() const {
    std::set<int> slots;
    for (int slot = 0; slot < 12; ++slot) {
      for (int i = 0; i < 8; ++i) {
        if (!std::isnan(k_at(slot / 3, i / 4, slot % 3, i % 4))) slots.insert(slot);
        if (!std::isnan(v_at(slot / 3, i / 4, slot % 3, i % 4))) slots.insert(slot);
      }
    }
    return slots;
  }

 private:
  static std::size_t index(int block, int head, int offset, int d) {
    return static_cast<std::size_t>(((block * 2 + head) * 3 + offset) * 4 + d);
  }
};

// k: 1, 2, ... for token 0, and on for the next; v: the negative. Two values of something else between tokens.
struct FreshKv {
  static constexpr int kStride = 10;
  std::vector<float> k, v;

  explicit FreshKv(int tokens) {
    for (int token = 0; token < tokens; ++token) {
      for (int i = 0; i < kStride; ++i) {
        k.push_back(i < 8 ? static_cast<float>(token * 8 + i + 1) : NAN);
        v.push_back(-k.back());
      }
    }
  }
};

}  // namespace

TEST_CASE("reshape_and_cache writes every slot but the negative and the skipped") {
  for (const Dtype dtype : kCacheDtypes) {
    INFO(name(dtype));
    SmallCache cache(dtype);
    const FreshKv fresh(5);
    const std::vector<std::int64_t> slots{4, -1, 11, 0, 7};
    const std::vector<std::uint32_t> skip_set{1U << 11 | 1U << 7 | 1U << 2};
    ReshapeAndCacheArgs args{
        fresh.k.data(), fresh.v.data(), FreshKv::kStride, slots.data(), skip_set.data(), cache.view, 5};
    reference::reshape_and_cache(args);
    CHECK(cache.written() == std::set<int>{4, 0});
    args.skip_set = nullptr;
    reference::reshape_and_cache(args);
    CHECK(cache.written() == std::set<int>{4, 11, 0, 7});
    const bool fp8 = bits(dtype) == 8;
    // Slot 4 is token 1 of block 1: the first new token. FP8 stores k / 0.5 and v / 2.
    CHECK(cache.k_at(1, 0, 1, 2) == 3.0 / (fp8 ? 0.5 : 1.0));
    CHECK(cache.k_at(1, 1, 1, 0) == 5.0 / (fp8 ? 0.5 : 1.0));
    CHECK(cache.v_at(1, 1, 1, 3) == -8.0 / (fp8 ? 2.0 : 1.0));
    // Slot 0 holds the fourth new token.
    CHECK(cache.v_at(0, 0, 0, 3) == -28.0 / (fp8 ? 2.0 : 1.0));
  }
}

TEST_CASE("a slot beyond the first word of the skip set is skipped by its own bit") {
  std::vector<float> k(80, NAN), v(80, NAN);
  const std::vector<float> fresh{1, 2};
  const std::vector<std::int64_t> slots{70, 38};
  const std::vector<std::uint32_t> skip_set{1U << 6, 0, 1U << 6};  // slots 6 and 70
  ReshapeAndCacheArgs args{fresh.data(), fresh.data(), 1, slots.data(), skip_set.data(), {}, 2};
  args.cache = {k.data(), v.data(), Dtype::f32, 10, 1, 8, 1};
  reference::reshape_and_cache(args);
  CHECK(std::isnan(k[70]));
  CHECK(k[38] == 2.0F);
}

TEST_CASE("FP8 caches hold the rounded, saturated quotient by the scale") {
  std::vector<std::uint8_t> k(4), v(4);
  const std::vector<float> fresh_k{1.0F, -0.3F, 1e6F, 0.0F}, fresh_v{3.0F, 0.1F, -1e9F, -0.0F};
  const std::int64_t slot = 0;
  ReshapeAndCacheArgs args{fresh_k.data(), fresh_v.data(), 4, &slot, nullptr, {}, 1};
  args.cache = {k.data(), v.data(), Dtype::fp8_e4m3, 1, 1, 1, 4, Fp8KvScales{0.5F, 2.0F}};
  reference::reshape_and_cache(args);
  CHECK(k == std::vector<std::uint8_t>{0x40, 0xB2, 0x7E, 0x00});  // 2, -0.625 (of -0.6), 448, 0
  CHECK(v == std::vector<std::uint8_t>{0x3C, 0x15, 0xFE, 0x80});  // 1.5, 0.05078125 (of 0.05), -448, -0
  args.cache.dtype = Dtype::fp8_e5m2;
  reference::reshape_and_cache(args);
  CHECK(k == std::vector<std::uint8_t>{0x40, 0xB9, 0x7B, 0x00});  // 2, -0.625, 57344, 0
  CHECK(v == std::vector<std::uint8_t>{0x3E, 0x2A, 0xFB, 0x80});  // 1.5, 0.046875, -57344, -0
}

TEST_CASE("reshape_and_cache stores K and V rounded once") {
  for (const Dtype dtype : kCacheDtypes) {
    INFO(name(dtype));
    SmallCache cache(dtype);
    TensorSource source(4);
    const std::vector<float> k = source.floats(7 * 8), v = source.floats(7 * 8);
    const std::vector<std::int64_t> slots{6, 7, 8, 0, 1, 9, 10};
    reference::reshape_and_cache({k.data(), v.data(), 8, slots.data(), nullptr, cache.view, 7});
    // The larger of a relative rounding to p bits, 2^-p, and half the spacing of subnormals at a scale of at most 2.
    const auto rounding = [&](float value) {
      if (dtype == Dtype::f32) return 0.0;
      const int precision = dtype == Dtype::f16 ? 11 : dtype == Dtype::bf16 ? 8 : dtype == Dtype::fp8_e4m3 ? 4 : 3;
      const double spacing = dtype == Dtype::fp8_e4m3 ? 0x1p-9 : dtype == Dtype::fp8_e5m2 ? 0x1p-16 : 0x1p-24;
      return std::max(std::ldexp(std::abs(double{value}), -precision), spacing);
    };
    const bool fp8 = bits(dtype) == 8;
    for (int i = 0; i < 7 * 8; ++i) {
      const auto slot = static_cast<int>(slots[static_cast<std::size_t>(i / 8)]), head = i % 8 / 4;
      const float key = k[static_cast<std::size_t>(i)], value = v[static_cast<std::size_t>(i)];
      CHECK_THAT(cache.k_at(slot / 3, head, slot % 3, i % 4) * (fp8 ? 0.5 : 1.0), WithinAbs(key, rounding(key)));
      CHECK_THAT(cache.v_at(slot / 3, head, slot % 3, i % 4) * (fp8 ? 2.0 : 1.0), WithinAbs(value, rounding(value)));
    }
  }
}

TEST_CASE("copy_blocks copies whole blocks in order, K and V") {
  for (const Dtype dtype : kCacheDtypes) {
    INFO(name(dtype));
    SmallCache cache(dtype);
    const FreshKv fresh(12);
    const std::vector<std::int64_t> slots{0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -1, -1};
    reference::reshape_and_cache(
        {fresh.k.data(), fresh.v.data(), FreshKv::kStride, slots.data(), nullptr, cache.view, 12});
    const SmallCache before = cache;
    const std::vector<std::int32_t> pairs{1, 3, 3, 0, 2, 2};
    reference::copy_blocks({cache.view, pairs.data(), 3});
    for (int i = 0; i < 2 * 3 * 4; ++i) {
      const int head = i / 12, offset = i / 4 % 3, d = i % 4;
      CHECK(cache.k_at(3, head, offset, d) == before.k_at(1, head, offset, d));
      CHECK(cache.v_at(0, head, offset, d) == before.v_at(1, head, offset, d));  // by way of block 3
      CHECK(cache.k_at(1, head, offset, d) == before.k_at(1, head, offset, d));
      CHECK(cache.v_at(2, head, offset, d) == before.v_at(2, head, offset, d));
    }
  }
}

TEST_CASE("rope_and_cache turns Q and K by hand-computed angles and stores K and V") {
  // One query head, one KV head of four values; position 1 turns pair (0, 2) by 90 degrees and leaves pair (1, 3).
  const std::vector<float> cos_sin{1, 1, 0, 0, 0, 1, 1, 0};
  const std::vector<std::int32_t> positions{1, 0, 1};
  const std::vector<std::int64_t> slots{2, 0, -1};
  for (const Dtype dtype : kCacheDtypes) {
    INFO(name(dtype));
    std::vector<float> qkv;
    for (int token = 0; token < 3; ++token) qkv.insert(qkv.end(), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    std::vector<std::byte> k(static_cast<std::size_t>(3 * 4 * bits(dtype) / 8), std::byte{0xFF}), v(k);
    const RopeAndCacheArgs args{qkv.data(),
                                positions.data(),
                                slots.data(),
                                cos_sin.data(),
                                {k.data(), v.data(), dtype, 3, 1, 1, 4, Fp8KvScales{0.5F, 2.0F}},
                                3,
                                1};
    reference::rope_and_cache(args);
    const std::vector<float> turned{-3, 2, 1, 4, -7, 6, 5, 8, 9, 10, 11, 12};
    CHECK(std::vector<float>(qkv.begin(), qkv.begin() + 12) == turned);
    CHECK(std::vector<float>(qkv.begin() + 12, qkv.begin() + 16) == std::vector<float>{1, 2, 3, 4});
    CHECK(std::vector<float>(qkv.begin() + 24, qkv.end()) == turned);
    const bool fp8 = bits(dtype) == 8;
    const auto stored = [&](const std::vector<std::byte>& data, std::size_t i) {
      return reference::load_value(data.data(), dtype, i);
    };
    CHECK(stored(k, 8) == -7 / (fp8 ? 0.5 : 1.0));
    CHECK(stored(k, 0) == 5 / (fp8 ? 0.5 : 1.0));
    CHECK(stored(v, 9) == 10 / (fp8 ? 2.0 : 1.0));
    CHECK(std::isnan(stored(k, 4)));  // slot 1: no token's
  }
}

}  // namespace dculab::kernels

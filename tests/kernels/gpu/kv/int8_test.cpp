// An int8 KV cache on the GPU: the reference's codes and scales, and attention over them.
#include <algorithm>
#include <bit>
#include <tuple>

#include "kernels/gpu/numbers.hpp"
#include "tests/kernels/gpu/cached_attention.hpp"

namespace dculab::kernels::gpu {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

constexpr AttentionShape int8_shape(int heads, int kv_heads, int head_dim) {
  return {.num_heads = heads, .num_kv_heads = kv_heads, .head_dim = head_dim, .dtype = Dtype::int8};
}

void check_int8(const CachedCase& test, Phase phase, const std::vector<NewTokens>& calls) {
  check_attention(test, phase, calls,
                  [](Device& device, const PagedAttentionArgs& args) { return CacheOnDevice(device, args.cache); });
}

}  // namespace

TEST_CASE("GPU int8 pairs become the halves of their codes") {
  using namespace host_build;
  for (std::uint32_t low = 0; low < 256; ++low) {
    const std::uint32_t high = 255 - low;
    const HalfPair pair = to_half_pair<Int8>(low | high << 8 | 0xABCD0000U);
    CHECK(to_float(low_half(pair)) == static_cast<float>(static_cast<std::int8_t>(low)));
    CHECK(to_float(high_half(pair)) == static_cast<float>(static_cast<std::int8_t>(high)));
  }
}

void check_same(const CacheOnDevice& cache, const CacheMemory& expected) {
  CHECK(cache.k.read<std::uint16_t>() == expected.k);
  CHECK(cache.v.read<std::uint16_t>() == expected.v);
  CHECK(same_bits(cache.k_scales.read<float>(), expected.k_scales));
  CHECK(same_bits(cache.v_scales.read<float>(), expected.v_scales));
}

TEST_CASE("GPU int8 caches are written as the reference writes them", "[gpu]") {
  const auto source_dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto& [heads, head_dim, block_size] =
      GENERATE(table<int, int, int>({{1, 8, 1}, {2, 80, 16}, {5, 128, 7}, {3, 32, 256}, {9, 256, 4}}));
  const bool by_head = GENERATE(false, true);
  CAPTURE(name(source_dtype), heads, head_dim, block_size, by_head);
  TensorSource source(3);
  const int width = heads * head_dim, stride = 2 * width + 8, tokens = 7;
  auto kv = source.stored(static_cast<std::size_t>(tokens * stride), source_dtype, 4.0F);
  std::fill_n(kv.begin(), bytes_of(source_dtype, static_cast<std::size_t>(head_dim)), std::byte{0});  // a scale of 0
  const auto wide = widen(kv, source_dtype);
  const std::vector<std::int64_t> slots{3, -1, 1, 11, 0, 7, 10};
  CacheMemory expected(Dtype::int8, 2 + 12 / block_size, heads, block_size, head_dim);
  reference::reshape_and_cache({.k = wide.data(),
                                .v = wide.data() + width,
                                .kv_stride = stride,
                                .slot_mapping = slots.data(),
                                .cache = expected.view,
                                .num_tokens = tokens});
  const std::vector<std::int64_t> own(static_cast<std::size_t>(heads), slots[3]);
  for_each_device([&](Device& device) {
    const CacheMemory untouched(Dtype::int8, 2 + 12 / block_size, heads, block_size, head_dim);
    const CacheOnDevice cache(device, untouched.view);
    const DeviceTensor values(device, kv), places(device, own);
    std::vector<std::int64_t> mapping = slots;
    if (by_head) mapping[3] = 5;  // that of its heads counts
    std::vector<const std::int64_t*> of_tokens(tokens, nullptr);
    of_tokens[3] = places.as<std::int64_t>();
    const DeviceTensor slot(device, mapping), own_slots(device, of_tokens);
    ReshapeAndCache args{
        .k = {values.as(), source_dtype},
        .v = {values.as<std::byte>() + bytes_of(source_dtype, static_cast<std::size_t>(width)), source_dtype},
        .kv_stride = stride,
        .slot_mapping = slot.as<std::int64_t>(),
        .cache = cache.view,
        .num_tokens = tokens};
    if (by_head) args.head_slots = {own_slots.as<const std::int64_t*>(), 0};
    device.reshape_and_cache(args);
    check_same(cache, expected);
  });
}

TEST_CASE("GPU decode attention over int8 agrees with the reference", "[gpu]") {
  const CachedCase cases[] = {{int8_shape(4, 2, 64)},
                              {int8_shape(5, 5, 80), 1, 32, 0, Dtype::f32},
                              {int8_shape(8, 1, 128), 64, 0, 0, Dtype::f32},
                              {int8_shape(12, 1, 32), 4, 64},
                              {int8_shape(3, 1, 256), 256}};
  std::size_t turn = 0;
  for (const CachedCase& test : cases) {
    if (thinned_out(turn++, 2)) continue;
    check_int8(test, Phase::decode, {{0, 1, 1}, {1, 70, 1}, {2, 333, 1}});
    check_int8(test, Phase::decode, {{0, 3, 2}, {1, 90, 3}});  // several new tokens
  }
}

TEST_CASE("GPU prefill attention over int8 agrees with the reference", "[gpu]") {
  const CachedCase cases[] = {
      {int8_shape(4, 2, 64)},    {int8_shape(5, 5, 80), 1, 0, 0, Dtype::f32},   {int8_shape(8, 1, 128), 64},
      {int8_shape(6, 2, 96), 7}, {int8_shape(2, 1, 256), 16, 0, 0, Dtype::f32}, {int8_shape(4, 4, 32), 16}};
  std::size_t turn = 0;
  for (const CachedCase& test : cases) {
    if (thinned_out(turn++, 3)) continue;
    check_int8(test, Phase::prefill, {{0, 1, 1}, {1, 41, 41}, {2, 70, 33}});
  }
}

TEST_CASE("GPU int8 caches of heads that no kernel is compiled for are refused", "[gpu]") {
  for_each_device([&](Device& device) {
    const DeviceTensor memory(device, 1024);
    ReshapeAndCache args;
    args.k = args.v = {memory.as(), Dtype::f16}, args.kv_stride = 512;
    args.cache = {
        .k = memory.as(), .v = memory.as(), .dtype = Dtype::int8, .num_kv_heads = 1, .block_size = 1, .head_dim = 512};
    CHECK_THROWS_WITH(device.reshape_and_cache(args), ContainsSubstring("head_dim 512"));
  });
}

}  // namespace dculab::kernels::gpu

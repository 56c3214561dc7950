// Do the GPU's KV cache kernels write, read and copy the bytes that the reference does?
#include <algorithm>
#include <array>
#include <numeric>

#include "kernels/gpu/kv_cache/swap_blocks.hpp"
#include "kernels/number_format.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {
namespace {

// A cache on the host, every byte `content` at first.
struct HostCache {
  HostCache(KvCacheView shape, std::byte content) : view(shape), k(bytes(shape), content), v(bytes(shape), content) {
    view.k = k.data();
    view.v = v.data();
  }
  static std::size_t bytes(const KvCacheView& shape) {
    return bytes_of(shape.dtype, static_cast<std::size_t>(shape.num_blocks) * shape.num_kv_heads * shape.block_size *
                                     shape.head_dim);
  }

  KvCacheView view;
  std::vector<std::byte> k, v;
};

}  // namespace

TEST_CASE("GPU reshape_and_cache writes what the reference writes, and nothing else", "[gpu]") {
  const auto cache_dtype = GENERATE(Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2);
  const auto source_dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto& [heads, head_dim, block_size] =
      GENERATE(table<int, int, int>({{1, 8, 1}, {2, 80, 16}, {5, 128, 7}, {3, 32, 256}}));
  CAPTURE(name(cache_dtype), name(source_dtype), heads, head_dim, block_size);
  constexpr int kTokens = 9;
  KvCacheView shape;
  shape.dtype = cache_dtype;
  shape.num_blocks = 2 + 12 / block_size, shape.num_kv_heads = heads, shape.block_size = block_size;
  shape.head_dim = head_dim, shape.extras = Fp8KvScales{0.37F, 3.0F};

  TensorSource source(3);
  const int width = heads * head_dim, stride = 2 * width + 8;  // K and V side by side
  const auto kv = source.stored(static_cast<std::size_t>(kTokens * stride), source_dtype, 4.0F);
  const auto wide = widen(kv, source_dtype);
  std::vector<std::int64_t> slots{3, -1, 1, 11, 0, 7, -5, 10, 2};
  HostCache expected(shape, std::byte{0xFF});
  reference::reshape_and_cache({.k = wide.data(),
                                .v = wide.data() + width,
                                .kv_stride = stride,
                                .slot_mapping = slots.data(),
                                .cache = expected.view,
                                .num_tokens = kTokens});
  for_each_device([&](Device& device) {
    const DeviceTensor k(device, expected.k.size()), v(device, expected.v.size());
    const DeviceTensor values(device, kv), slot(device, slots);
    device.reshape_and_cache(
        {.k = {values.as(), source_dtype},
         .v = {values.as<std::byte>() + bytes_of(source_dtype, static_cast<std::size_t>(width)), source_dtype},
         .kv_stride = stride,
         .slot_mapping = slot.as<std::int64_t>(),
         .cache = on_device(shape, k, v),
         .num_tokens = kTokens});
    CHECK(k.read<std::byte>() == expected.k);
    CHECK(v.read<std::byte>() == expected.v);
  });
}

TEST_CASE("GPU copy_blocks copies whole blocks within a cache and between caches", "[gpu]") {
  const int block_bytes = GENERATE(16, 80, 4096, 4112, 4, 2052);
  constexpr std::size_t kBlocks = 6;
  std::vector<std::uint8_t> blocks(kBlocks * static_cast<std::size_t>(block_bytes));
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  const std::vector<std::int32_t> pairs{4, 0, 2, 5, 4, 3};
  const bool within = GENERATE(true, false);
  CAPTURE(block_bytes, within);
  auto expected = within ? blocks : std::vector<std::uint8_t>(blocks.size(), 0xFF);
  for (std::size_t pair = 0; pair < 3; ++pair)
    std::copy_n(blocks.begin() + pairs[2 * pair] * block_bytes, block_bytes,
                expected.begin() + pairs[2 * pair + 1] * block_bytes);
  for_each_device([&](Device& device) {
    const DeviceTensor source(device, blocks), other(device, blocks.size()), pair(device, pairs);
    const DeviceTensor& destination = within ? source : other;
    device.copy_blocks({.source = source.as(),
                        .destination = destination.as(),
                        .pairs = pair.as<std::int32_t>(),
                        .num_pairs = 3,
                        .block_bytes = block_bytes});
    CHECK(destination.read<std::uint8_t>() == expected);
  });
}

TEST_CASE("neighbouring blocks are swapped in one copy") {
  const std::vector<BlockPair> pairs{{7, 3}, {5, 1}, {6, 2}, {8, 0}, {9, 5}, {10, 6}, {2, 7}};
  const auto runs = block_runs(pairs);
  REQUIRE(runs.size() == 4);
  const std::array<BlockRun, 4> expected{{{8, 0, 1}, {5, 1, 3}, {9, 5, 2}, {2, 7, 1}}};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(runs[i].source == expected[i].source);
    CHECK(runs[i].destination == expected[i].destination);
    CHECK(runs[i].count == expected[i].count);
  }
  CHECK(block_runs({}).empty());
}

TEST_CASE("GPU blocks that are swapped out and in again are the same elsewhere", "[gpu]") {
  constexpr std::size_t kBytes = 48, kBlocks = 4;
  std::vector<std::uint8_t> blocks(kBytes * kBlocks);
  std::iota(blocks.begin(), blocks.end(), std::uint8_t{0});
  for_each_device([&](Device& device) {
    const DeviceTensor pool(device, blocks), copies(device, blocks.size());
    std::vector<std::uint8_t> host(blocks.size(), 0);
    const std::vector<BlockPair> out{{2, 0}, {3, 1}, {0, 2}}, in{{0, 0}, {1, 1}, {2, 3}};
    swap_blocks(device, {pool.as(), host.data(), out, kBytes, SwapDirection::to_host});
    swap_blocks(device, {host.data(), pool.as(), in, kBytes, SwapDirection::to_device});
    device.synchronize();
    auto expected = blocks;
    for (const auto& [from, to] : {std::pair{2, 0}, {3, 1}, {0, 3}})
      std::copy_n(blocks.begin() + from * int{kBytes}, kBytes, expected.begin() + to * int{kBytes});
    CHECK(pool.read<std::uint8_t>() == expected);

    const std::vector<BlockPair> all{{0, 1}, {1, 2}, {2, 3}, {3, 0}};
    swap_blocks(device, {pool.as(), copies.as(), all, kBytes, SwapDirection::within_device});
    std::rotate(expected.begin(), expected.end() - int{kBytes}, expected.end());
    CHECK(copies.read<std::uint8_t>() == expected);
  });
}

TEST_CASE("GPU KV cache kernels refuse what they are not compiled for, and say what they are", "[gpu]") {
  for_each_device([&](Device& device) {
    const DeviceTensor memory(device, 1024);
    KvCacheView cache{memory.as(), memory.as(), Dtype::f16, 1, 1, 1, 20};
    ReshapeAndCache args{.k = {memory.as(), Dtype::f16},
                         .v = {memory.as(), Dtype::f16},
                         .kv_stride = 32,
                         .cache = cache,
                         .num_tokens = 1};
    CHECK_THROWS_WITH(device.reshape_and_cache(args),
                      ContainsSubstring("head_dim 20") && ContainsSubstring("multiples of 8"));
    args.cache.head_dim = 16, args.kv_stride = 17;
    CHECK_THROWS_WITH(device.reshape_and_cache(args), ContainsSubstring("17"));
    args.kv_stride = 16, args.cache.dtype = Dtype::f32;
    CHECK_THROWS_WITH(device.reshape_and_cache(args), ContainsSubstring("f32") && ContainsSubstring("fp8_e4m3"));
    CHECK_THROWS_WITH(device.copy_blocks({memory.as(), memory.as(), nullptr, 1, 22}), ContainsSubstring("22"));
  });
}

}  // namespace dculab::kernels::gpu

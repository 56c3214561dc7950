#include "engine/kv/kv_storage.hpp"

#include <cstring>
#include <limits>

#include "core/error.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

ModelShape gqa_shape() { return read_model_shape(kGoldenFolder / "gqa"); }  // 2 layers, 2 KV heads of 16

std::byte* block(void* pool, BlockId id, std::size_t block_bytes) {
  return static_cast<std::byte*>(pool) + static_cast<std::size_t>(id) * block_bytes;
}

}  // namespace

TEST_CASE("each layer has its own zeroed K and V pools") {
  for (const auto& [dtype, value_bytes] : {std::pair{Dtype::f32, 4}, {Dtype::f16, 2}, {Dtype::bf16, 2}}) {
    KvStorage storage(gqa_shape(), {.num_blocks = 5, .block_size = 8, .dtype = dtype});
    const std::ptrdiff_t pool_bytes = 5 * 2 * 8 * 16 * value_bytes;
    REQUIRE(kv_block_bytes(gqa_shape(), 8, dtype).value() == 2.0 * 2 * 2 * 8 * 16 * value_bytes);
    const kernels::KvCacheView first = storage.layer(0);
    const kernels::KvCacheView second = storage.layer(1);
    REQUIRE(first.num_blocks == 5);
    REQUIRE(first.num_kv_heads == 2);
    REQUIRE(first.block_size == 8);
    REQUIRE(first.head_dim == 16);
    REQUIRE(first.dtype == dtype);
    REQUIRE(static_cast<std::byte*>(first.v) - static_cast<std::byte*>(first.k) == pool_bytes);
    REQUIRE(static_cast<std::byte*>(second.k) - static_cast<std::byte*>(first.v) == pool_bytes);
    REQUIRE(*block(second.v, 4, static_cast<std::size_t>(pool_bytes / 5)) == std::byte{0});
  }
}

TEST_CASE("blocks are copied in order, in K and V of every layer") {
  KvStorage storage(gqa_shape(), {.num_blocks = 4, .block_size = 4, .dtype = Dtype::f16});
  const std::size_t bytes = 2 * 4 * 16 * 2;
  std::vector<std::byte*> pools;
  for (int layer = 0; layer < 2; ++layer)
    for (void* pool : {storage.layer(layer).k, storage.layer(layer).v}) pools.push_back(static_cast<std::byte*>(pool));
  for (std::size_t pool = 0; pool < pools.size(); ++pool)
    for (BlockId id = 0; id < 4; ++id)
      std::memset(block(pools[pool], id, bytes), static_cast<int>(10 * pool) + id, bytes);
  const std::vector<BlockCopy> copies{{0, 3}, {3, 2}};
  storage.copy_blocks(copies);
  for (std::size_t pool = 0; pool < pools.size(); ++pool)
    for (const auto& [id, content] : {std::pair{0, 0}, {1, 1}, {2, 0}, {3, 0}})
      for (std::size_t i = 0; i < bytes; ++i)
        REQUIRE(block(pools[pool], id, bytes)[i] ==
                static_cast<std::byte>(10 * pool + static_cast<std::size_t>(content)));
}

TEST_CASE("a KV cache larger than memory is refused with its size and what to do") {
  const KvCacheOptions options{.num_blocks = std::numeric_limits<int>::max(), .block_size = 256, .dtype = Dtype::f32};
  REQUIRE_THROWS_WITH(
      KvStorage(gqa_shape(), options),
      ContainsSubstring("a KV cache of 2147483647 blocks of 256 tokens needs 262144.00 GiB, but only ") &&
          ContainsSubstring(" GiB of memory is available; ask for fewer tokens"));
  REQUIRE_THROWS_WITH(KvStorage(gqa_shape(), {.num_blocks = 4, .block_size = 16, .dtype = Dtype::fp8_e4m3}),
                      ContainsSubstring("kv_cache_dtype fp8_e4m3 is not supported on the CPU; use f32, f16 or bf16"));
  REQUIRE_THROWS_AS(KvStorage(gqa_shape(), {.num_blocks = 0, .block_size = 16, .dtype = Dtype::f16}), InputError);
}

}  // namespace dculab::engine

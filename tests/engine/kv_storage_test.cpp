#include "engine/kv/kv_storage.hpp"
#include "engine/kv/residual_rows.hpp"
#include "kernels/kv/kivi.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "core/error.hpp"
#include "kernels/cpu/cpu_kernels.hpp"
#include "model/folder/model_config.hpp"
#include "model/kv/kv_bytes.hpp"
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
    REQUIRE((kv_bytes_per_token(gqa_shape(), dtype) * 8).value() == 2.0 * 2 * 2 * 8 * 16 * value_bytes);
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

TEST_CASE("blocks that one cache hands over are the same in another, wherever they lie") {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::fp8_e4m3, Dtype::int8}) {
    KvStorage from(gqa_shape(), {.num_blocks = 5, .block_size = 8, .dtype = dtype});
    KvStorage to(gqa_shape(), {.num_blocks = 9, .block_size = 8, .dtype = dtype});
    from.fill_randomly(3);
    to.fill_randomly(4);
    REQUIRE(from.bytes_per_block() == to.bytes_per_block());
    const std::vector<BlockId> source{4, 0, 2}, destination{1, 8, 3}, last{2};
    std::vector<std::byte> sent(3 * from.bytes_per_block()), received(sent.size()), before(sent.size());
    from.read_blocks(source, sent);
    to.read_blocks(destination, before);
    CHECK(before != sent);
    to.write_blocks(destination, sent);
    to.read_blocks(destination, received);
    CHECK(received == sent);
    std::vector<std::byte> one(from.bytes_per_block());
    from.read_blocks(last, one);
    CHECK(std::equal(one.begin(), one.end(), sent.end() - std::ssize(one)));
  }
}

// body(row, scale, slot, base) for what each token of 3 blocks of 4 has in every layer and head, of K and of V: its
// bytes, its int8 scale or null, and a number of the layer, head and tensor.
template <typename Body>
void for_each_row(const KvStorage& storage, const ModelShape& shape, Body&& body) {
  for (int layer = 0; layer < shape.num_layers(); ++layer) {
    const kernels::KvCacheView& view = storage.layer(layer);
    const auto bytes = static_cast<std::size_t>(view.head_dim * bits(view.dtype) / 8);
    const auto int8 = view.dtype == Dtype::int8 ? view.extras.as<kernels::Int8KvScales>() : kernels::Int8KvScales();
    for (int head = 0; head < view.num_kv_heads; ++head)
      for (int slot = 0; slot < 12; ++slot)
        for (const bool is_k : {true, false}) {
          if (!is_k && view.v == view.k) continue;
          const int row = (slot / 4 * view.num_kv_heads + head) * 4 + slot % 4;
          float* const scales = is_k ? int8.k : int8.v;
          auto* const pool = static_cast<std::byte*>(is_k ? view.k : view.v);
          body(std::span(pool + static_cast<std::size_t>(row) * bytes, bytes),
               scales == nullptr ? nullptr : scales + row, slot, (layer * 8 + head * 2 + (is_k ? 1 : 0)) % 16 * 16);
        }
  }
}

TEST_CASE("slots move in order, K and V of every layer and head, with their scales") {
  const auto latent_shape = read_model_shape(kFamilyFolder / "deepseek_v3");
  for (const ModelShape& shape : {gqa_shape(), latent_shape})
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::fp8_e4m3, Dtype::int8}) {
      INFO(shape.name << " " << name(dtype));
      KvStorage storage(shape, {.num_blocks = 3, .block_size = 4, .dtype = dtype});
      for_each_row(storage, shape, [](std::span<std::byte> row, float* scale, int slot, int base) {
        std::ranges::fill(row, static_cast<std::byte>(base + slot));
        if (scale != nullptr) *scale = static_cast<float>(base + slot);
      });
      const std::vector<SlotMove> moves{{9, 2}, {2, 7}, {5, 5}, {11, 4}};
      storage.move_slots(moves);
      for_each_row(storage, shape, [](std::span<std::byte> row, const float* scale, int slot, int base) {
        const int from = slot == 2 || slot == 7 ? 9 : slot == 4 ? 11 : slot;
        REQUIRE(std::ranges::all_of(row, [&](std::byte byte) { return byte == static_cast<std::byte>(base + from); }));
        if (scale != nullptr) REQUIRE(*scale == static_cast<float>(base + from));
      });
    }
}

TEST_CASE("swapped blocks come back as they were, out before in, with their scales") {
  for (const Dtype dtype : {Dtype::f16, Dtype::int8, Dtype::f32}) {
    const KvCacheOptions options{.num_blocks = 6, .block_size = 8, .dtype = dtype, .num_host_blocks = 3};
    KvStorage storage(gqa_shape(), options), untouched(gqa_shape(), options);
    for (KvStorage* each : {&storage, &untouched}) each->fill_randomly(4);
    const auto bytes_of = [dtype](const KvStorage& each, BlockId id) {
      std::vector<std::byte> bytes;
      for (int layer = 0; layer < 2; ++layer) {
        const kernels::KvCacheView view = each.layer(layer);
        const std::size_t values = 2U * 8 * 16 * static_cast<std::size_t>(bits(view.dtype)) / 8;
        for (void* pool : {view.k, view.v}) {
          const std::byte* first = block(static_cast<std::byte*>(pool), id, values);
          bytes.insert(bytes.end(), first, first + values);
        }
        if (dtype != Dtype::int8) continue;
        const auto of_layer = view.extras.as<kernels::Int8KvScales>();
        for (const float* scales : {of_layer.k, of_layer.v})
          for (int i = 0; i < 2 * 8; ++i)
            bytes.push_back(static_cast<std::byte>(static_cast<int>(127 * scales[id * 2 * 8 + i])));
      }
      return bytes;
    };
    storage.swap_blocks(std::vector<BlockCopy>{{0, 2}, {1, 0}}, std::vector<BlockCopy>{{2, 1}, {0, 4}});
    CHECK(bytes_of(storage, 1) == bytes_of(untouched, 0));
    CHECK(bytes_of(storage, 4) == bytes_of(untouched, 1));
    for (const BlockId other : {0, 2, 3, 5}) CHECK(bytes_of(storage, other) == bytes_of(untouched, other));
  }
}

TEST_CASE("scales lie beside the blocks, and copied blocks take theirs along") {
  ModelShape shape = gqa_shape();
  shape.kinds[0].gqa().heads.head_dim = 32;
  for (const Dtype dtype : {Dtype::int8, Dtype::kivi4, Dtype::kivi2}) {
    INFO(name(dtype));
    KvStorage storage(shape, {.num_blocks = 3, .block_size = 8, .dtype = dtype, .max_num_seqs = 2});
    const bool is_int8 = dtype == Dtype::int8;
    // Of K (or V) in one layer: 2 heads of 32 channels in 8 tokens.
    const std::size_t values = 2 * 32 * 8;
    const std::size_t bytes = values * static_cast<std::size_t>(bits(dtype)) / 8 + (is_int8 ? 0 : values / 32 * 4);
    const std::size_t scale_bytes = is_int8 ? 2 * 8 * 4 : 0;
    REQUIRE((kv_bytes_per_token(shape, dtype) * 8).value() == 2.0 * 2.0 * static_cast<double>(bytes + scale_bytes));
    std::vector<std::pair<std::byte*, std::size_t>> pools;
    for (int layer = 0; layer < 2; ++layer) {
      const kernels::KvCacheView view = storage.layer(layer);
      for (void* pool : {view.k, view.v}) pools.emplace_back(static_cast<std::byte*>(pool), bytes);
      if (is_int8) {
        const auto of_layer = view.extras.as<kernels::Int8KvScales>();
        for (float* scales : {of_layer.k, of_layer.v})
          pools.emplace_back(reinterpret_cast<std::byte*>(scales), scale_bytes);
      } else {
        const auto residual = view.extras.as<kernels::KiviExtras>().residual;
        REQUIRE(residual.v - residual.k == 2 * 2 * 128 * 32);
      }
    }
    for (std::size_t i = 0; i < pools.size(); ++i)
      for (BlockId id = 0; id < 3; ++id)
        std::memset(block(pools[i].first, id, pools[i].second), static_cast<int>(3 * i) + id, pools[i].second);
    const std::vector<BlockCopy> copies{{0, 2}, {2, 1}};
    storage.copy_blocks(copies);
    for (std::size_t i = 0; i < pools.size(); ++i)
      for (std::size_t at = 0; at < 3 * pools[i].second; ++at)
        REQUIRE(pools[i].first[at] == static_cast<std::byte>(3 * i));
  }
}

TEST_CASE("residuals belong to running sequences and are free again when those are gone") {
  ResidualRows rows(2);
  const auto assign = [&](std::vector<SequenceSlice> slices) {
    Batch batch;
    batch.sequences = std::move(slices);
    const auto found = rows.assign(batch);
    return std::vector<std::int32_t>(found.begin(), found.end());
  };
  const auto slice = [](SequenceId id, int computed, int count) {
    return SequenceSlice{.id = id, .num_computed_tokens = computed, .num_new_tokens = count};
  };
  REQUIRE(assign({slice(7, 0, 5), slice(8, 0, 2)}) == std::vector<std::int32_t>{0, 1});
  REQUIRE(assign({slice(8, 2, 1), slice(7, 5, 1)}) == std::vector<std::int32_t>{1, 0});
  REQUIRE(assign({slice(8, 3, 1)}) == std::vector<std::int32_t>{1});  // 7 has ended
  REQUIRE(assign({slice(9, 0, 4), slice(8, 4, 1)}) == std::vector<std::int32_t>{0, 1});
  REQUIRE(assign({slice(8, 0, 3)}) == std::vector<std::int32_t>{0});  // preempted, begins anew
  REQUIRE_THROWS_WITH(assign({slice(9, 4, 1)}), ContainsSubstring("sequence 9 goes on from 4 tokens"));
  REQUIRE_THROWS_WITH(assign({slice(8, 4, 1)}), ContainsSubstring("sequence 8 goes on from 4 tokens"));
  REQUIRE_THROWS_WITH(assign({slice(1, 0, 1), slice(2, 0, 1), slice(3, 0, 1)}), ContainsSubstring("more sequences"));
  rows.allow_any_start();
  REQUIRE(assign({slice(4, 100, 1), slice(5, 50, 1)}).size() == 2);
  REQUIRE(assign({slice(4, 100, 1), slice(5, 50, 1)}) == assign({slice(4, 100, 1), slice(5, 50, 1)}));
}

TEST_CASE("random values of every dtype are numbers") {
  ModelShape shape = gqa_shape();
  shape.kinds[0].gqa().heads.head_dim = 32;
  for (const Dtype dtype : {Dtype::fp8_e4m3, Dtype::int8, Dtype::kivi4, Dtype::kivi2}) {
    INFO(name(dtype));
    KvStorage storage(shape, {.num_blocks = 8, .block_size = 16, .dtype = dtype, .max_num_seqs = 1});
    storage.fill_randomly(5);
    std::vector<float> q(64, 1.0F), out(64, -5.0F);
    const std::vector<std::int32_t> table{7, 6, 5, 4, 3, 2, 1, 0}, starts{0, 1}, context{128}, rows{0};
    kernels::PagedAttentionArgs args;
    args.q = q.data(), args.q_stride = 64, args.cache = storage.layer(1), args.out = out.data();
    args.block_tables = table.data(), args.max_blocks_per_seq = 8, args.query_start_loc = starts.data();
    args.context_lens = context.data(), args.num_seqs = 1, args.num_heads = 2, args.scale = 0.1F;
    if (is_kivi(dtype))
      args.cache.extras = kernels::KiviExtras{args.cache.extras.as<kernels::KiviExtras>().residual,
                                              {q.data(), q.data(), 64, rows.data()}};
    kernels::cpu::ThreadPool threads(1);
    kernels::cpu::Workspace workspace;
    kernels::cpu::paged_attention(threads, workspace, args);
    for (const float value : out) REQUIRE(std::abs(value) <= 1.0F);
  }
}

TEST_CASE("a KV cache larger than memory is refused with its size and what to do") {
  const KvCacheOptions options{.num_blocks = std::numeric_limits<int>::max(), .block_size = 256, .dtype = Dtype::f32};
  REQUIRE_THROWS_WITH(
      KvStorage(gqa_shape(), options),
      ContainsSubstring("a KV cache of 2147483647 blocks of 256 tokens needs 262144.00 GiB, but only ") &&
          ContainsSubstring(" GiB of memory is available; ask for fewer tokens"));
  REQUIRE_THROWS_WITH(
      KvStorage(gqa_shape(), {.num_blocks = 4, .block_size = 16, .dtype = Dtype::int4}),
      ContainsSubstring("kv_cache_dtype int4 is not supported on the CPU; use one of f32, f16, bf16, fp8_e4"));
  REQUIRE_THROWS_WITH(KvStorage(gqa_shape(), {.num_blocks = 4, .block_size = 16, .dtype = Dtype::kivi4}),
                      ContainsSubstring("kivi4 needs a head_dim that is a multiple of 32, not 16"));
  REQUIRE_THROWS_AS(KvStorage(gqa_shape(), {.num_blocks = 0, .block_size = 16, .dtype = Dtype::f16}), InputError);
}

}  // namespace dculab::engine

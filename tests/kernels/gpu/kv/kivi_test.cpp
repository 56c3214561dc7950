// A KIVI cache on the GPU: the reference's codes and residuals, and attention over them.
#include <algorithm>
#include <cmath>

#include "kernels/number_format.hpp"
#include "lower/dculab_gpu/kivi_tiling.hpp"
#include "tests/kernels/gpu/cached_attention.hpp"
#include "tests/kernels/kv/kivi_case.hpp"

namespace dculab::kernels::gpu {
namespace {

// New tokens that round to those of F16 that the reference is given. In f32 they are off by less than half a step.
std::vector<std::byte> stored_rows(const float* values, std::size_t count, Dtype dtype) {
  std::vector<std::byte> bytes(bytes_of(dtype, count));
  for (std::size_t i = 0; i < count; ++i)
    reference::store_value(bytes.data(), dtype, i, dtype == Dtype::f32 ? values[i] * (1 + 0x1p-14F) : values[i]);
  return bytes;
}

// What a call of the reference is given, on a device. `records`: bytes of K, or of V.
struct KiviMemory {
  KiviMemory(Device& device, const KvCacheView& host, std::size_t records, int num_tokens, int num_residuals,
             int num_seqs, Dtype dtype)
      : KiviMemory(device, host, host.extras.as<KiviExtras>(), records, static_cast<std::size_t>(num_tokens),
                   static_cast<std::size_t>(num_residuals), static_cast<std::size_t>(num_seqs), dtype) {}

  KvCacheView view;
  DeviceTensor k, v, residual_k, residual_v, new_k, new_v, rows;

 private:
  KiviMemory(Device& device, const KvCacheView& host, const KiviExtras& extras, std::size_t records,
             std::size_t num_tokens, std::size_t num_residuals, std::size_t num_seqs, Dtype dtype)
      : view(host),
        k(device, host.k, records),
        v(device, host.v, records),
        residual_k(device, extras.residual.k, residual_bytes(host, extras, num_residuals)),
        residual_v(device, extras.residual.v, residual_bytes(host, extras, num_residuals)),
        new_k(device, stored_rows(extras.new_kv.k, num_tokens * std::size_t(extras.new_kv.stride), dtype)),
        new_v(device, stored_rows(extras.new_kv.v, num_tokens * std::size_t(extras.new_kv.stride), dtype)),
        rows(device, extras.new_kv.residual_rows, 4 * num_seqs) {
    view.k = k.as(), view.v = v.as();
    view.extras = KiviOnDevice{
        .residual = {residual_k.as<std::uint16_t>(), residual_v.as<std::uint16_t>(), extras.residual.tokens},
        .new_k = new_k.as(),
        .new_v = new_v.as(),
        .residual_rows = rows.as<std::int32_t>(),
        .stride = static_cast<std::int32_t>(extras.new_kv.stride),
        .new_dtype = dtype};
  }
  static std::size_t residual_bytes(const KvCacheView& host, const KiviExtras& extras, std::size_t residuals) {
    return 2 * residuals * std::size_t(host.num_kv_heads) * std::size_t(extras.residual.tokens) *
           std::size_t(host.head_dim);
  }
};

std::size_t record_bytes(const KvCacheView& view) {
  const double values = 1.0 * view.num_blocks * view.num_kv_heads * view.block_size * view.head_dim;
  return static_cast<std::size_t>(kv_storage(view.dtype, values, view.head_dim).value());
}

// quantize_groups and keep_residual on a device, written back to where the reference would write.
void advance_on(Device& device, const KiviArgs& args, KiviCase& work, Dtype dtype) {
  const int count = args.query_start_loc[1], computed = args.context_lens[0] - count;
  const KiviMemory memory(device, args.cache, record_bytes(args.cache), 2 * count, 3, 2, dtype);
  const DeviceTensor tables(device, work.tables), starts(device, args.query_start_loc, 12),
      contexts(device, args.context_lens, 8);
  KiviTokens tokens{.cache = memory.view,
                    .block_tables = tables.as<std::int32_t>(),
                    .max_blocks_per_seq = args.max_blocks_per_seq,
                    .query_start_loc = starts.as<std::int32_t>(),
                    .context_lens = contexts.as<std::int32_t>(),
                    .num_seqs = 2,
                    .most = args.context_lens[0] / kKiviGroup - computed / kKiviGroup};
  if (tokens.most > 0) device.quantize_groups(tokens);
  tokens.most = std::min(count, work.residual_tokens);
  device.keep_residual(tokens);
  work.cache.k = memory.k.read<std::uint16_t>(), work.cache.v = memory.v.read<std::uint16_t>();
  work.cache.view.k = work.cache.k.data(), work.cache.view.v = work.cache.v.data();
  work.residual_k = memory.residual_k.read<std::uint16_t>();
  work.residual_v = memory.residual_v.read<std::uint16_t>();
}

void check_kivi(const CachedCase& test, Phase phase, const std::vector<NewTokens>& calls) {
  check_attention(test, phase, calls, [&](Device& device, const PagedAttentionArgs& args) {
    return KiviMemory(device, args.cache, record_bytes(args.cache), args.query_start_loc[args.num_seqs], args.num_seqs,
                      args.num_seqs, test.query);
  });
}

constexpr AttentionShape kivi_shape(Dtype dtype, int heads, int kv_heads, int head_dim, int residual_tokens = 32) {
  return {.num_heads = heads,
          .num_kv_heads = kv_heads,
          .head_dim = head_dim,
          .dtype = dtype,
          .residual_tokens = residual_tokens};
}

}  // namespace

TEST_CASE("GPU KIVI groups and residuals are the reference's bytes, in chunks of any size", "[gpu]") {
  const auto dtype = GENERATE(Dtype::kivi4, Dtype::kivi2);
  const auto& [block_size, chunk, new_dtype] = GENERATE(table<int, int, Dtype>(
      {{1, 40, Dtype::f16}, {4, 25, Dtype::f32}, {16, 8, Dtype::f16}, {32, 200, Dtype::f32}, {128, 100, Dtype::f16}}));
  CAPTURE(name(dtype), block_size, chunk, name(new_dtype));
  KiviCase expected(dtype, block_size, 32);
  expected.advance(0, 200, [](const KiviArgs& args) {
    reference::quantize_groups(args);
    reference::keep_residual(args);
  });
  for_each_device([&](Device& device) {
    KiviCase work(dtype, block_size, 32);
    for (int computed = 0; computed < 200; computed += chunk)
      work.advance(computed, chunk, [&](const KiviArgs& args) { advance_on(device, args, work, new_dtype); });
    CHECK(work.cache.k == expected.cache.k);
    CHECK(work.cache.v == expected.cache.v);
    CHECK(work.residual_k == expected.residual_k);
    CHECK(work.residual_v == expected.residual_v);
  });
}

TEST_CASE("GPU decode attention over KIVI agrees with the reference", "[gpu]") {
  const auto dtype = GENERATE(Dtype::kivi4, Dtype::kivi2);
  const CachedCase cases[] = {
      {kivi_shape(dtype, 4, 2, 64)},          {kivi_shape(dtype, 3, 3, 96), 4, 32, 0, Dtype::f32},
      {kivi_shape(dtype, 8, 1, 128, 64), 64}, {kivi_shape(dtype, 6, 2, 32), 8, 64, 1},
      {kivi_shape(dtype, 5, 1, 256), 32, 48}, {kivi_shape(dtype, 7, 1, 160), 1, 0, 0, Dtype::f32}};
  std::size_t turn = 0;
  for (const CachedCase& test : cases) {
    if (thinned_out(turn++, 2)) continue;
    check_kivi(test, Phase::decode, {{0, 1, 1}, {1, 33, 1}, {2, 64, 1}, {3, 65, 1}, {4, 333, 1}});
  }
}

TEST_CASE("GPU prefill attention over KIVI agrees with the reference", "[gpu]") {
  const auto dtype = GENERATE(Dtype::kivi4, Dtype::kivi2);
  const CachedCase cases[] = {
      {kivi_shape(dtype, 4, 2, 64)},        {kivi_shape(dtype, 3, 3, 96), 4, 0, 0, Dtype::f32},
      {kivi_shape(dtype, 8, 1, 128), 64},   {kivi_shape(dtype, 2, 1, 256), 16, 0, 0, Dtype::f32},
      {kivi_shape(dtype, 5, 1, 32, 64), 8}, {kivi_shape(dtype, 1, 1, 256), 1}};
  std::size_t turn = 0;
  for (const CachedCase& test : cases) {
    if (thinned_out(turn++, 3)) continue;
    check_kivi(test, Phase::prefill, {{0, 1, 1}, {1, 75, 75}, {2, 140, 33}, {3, 97, 1}, {4, 130, 65}});
  }
}

TEST_CASE("GPU attention over KIVI has windows, ALiBi and soft caps", "[gpu]") {
  const auto dtype = GENERATE(Dtype::kivi4, Dtype::kivi2);
  const auto phase = GENERATE(Phase::decode, Phase::prefill);
  const auto query = GENERATE(Dtype::f16, Dtype::f32);
  CachedCase test{kivi_shape(dtype, 4, 2, 64), 8, 64, 0, query};
  const int tokens = phase == Phase::prefill ? 40 : 1;
  const auto agree = [&] { check_kivi(test, phase, {{0, 180, tokens}, {1, 45, tokens}}); };
  SECTION("window in the quantized tokens") { test.shape.sliding_window = 100, agree(); }
  SECTION("window in the residual") { test.shape.sliding_window = 20, agree(); }
  SECTION("ALiBi") { test.shape.alibi = Alibi::on, agree(); }
  SECTION("soft cap") { test.shape.soft_cap = 2.5F, agree(); }
}

TEST_CASE("GPU KIVI caches that no kernel is compiled for are refused", "[gpu]") {
  const auto device = open_host_device({});
  const DeviceTensor memory(*device, 4096);
  PagedAttention args;
  args.q = {memory.as(), Dtype::f16}, args.q_stride = 96, args.out = {memory.as(), Dtype::f32};
  args.num_seqs = args.num_heads = 1;
  args.cache = {.k = memory.as(),
                .v = memory.as(),
                .dtype = Dtype::kivi4,
                .num_blocks = 1,
                .num_kv_heads = 1,
                .block_size = 16,
                .head_dim = 80};
  KiviOnDevice kivi{.residual = {.tokens = 32}, .stride = 96};
  args.cache.extras = kivi;
  CHECK_THROWS_WITH(device->paged_attention(args), ContainsSubstring("head_dim 80"));
  args.cache.head_dim = 96, args.cache.block_size = 24;
  CHECK_THROWS_WITH(device->paged_attention(args), ContainsSubstring("block size 24"));
  KiviTokens tokens{.cache = args.cache};
  CHECK_THROWS_WITH(device->quantize_groups(tokens), ContainsSubstring("blocks of 24"));
  args.cache.block_size = 16, kivi.residual.tokens = 40;
  args.cache.extras = kivi;
  CHECK_THROWS_WITH(device->paged_attention(args), ContainsSubstring("40 tokens"));
  PrefillAttention prefill{.q = args.q, .q_stride = 96, .cache = args.cache, .out = args.out};
  kivi.residual.tokens = 32, kivi.new_dtype = Dtype::f32;
  prefill.cache.extras = kivi;
  CHECK_THROWS_WITH(device->prefill_attention(prefill), ContainsSubstring("one format"));
  prefill.cache.head_dim = 160;
  CHECK_THROWS_WITH(device->prefill_attention(prefill), ContainsSubstring("32, 64, 96, 128, 256"));
}

}  // namespace dculab::kernels::gpu

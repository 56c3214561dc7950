// Do the CPU kernels that write K and V store the reference's bytes?
#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "kernels/cpu/kv/kv_kernels.hpp"
#include "tests/kernels/kv/kivi_case.hpp"
#include "tests/kernels/paged_sequences.hpp"

namespace dculab::kernels {
namespace {

bool same_cache(const CacheMemory& a, const CacheMemory& b) {
  return same_bytes(a.k, b.k) && same_bytes(a.v, b.v) && same_bytes(a.k_scales, b.k_scales) &&
         same_bytes(a.v_scales, b.v_scales);
}

}  // namespace

TEST_CASE("K and V are stored as the reference stores them, in every format with one scale or none per token") {
  constexpr int kTokens = 9, kHeads = 3, kKvHeads = 2;
  for (const Dtype dtype : kCachedDtypes) {
    if (is_kivi(dtype)) continue;
    for (const int head_dim : {2, 6, 16, 64, 80}) {
      INFO(name(dtype) << " head_dim " << head_dim);
      TensorSource source(3);
      const int width = (kHeads + 2 * kKvHeads) * head_dim;
      std::vector<float> qkv = awkward_values(source, static_cast<std::size_t>(kTokens * width), dtype);
      std::fill_n(qkv.begin() + 2 * width, width, 0.0F);  // a token of zeros
      const std::vector<std::int32_t> positions(kTokens, 0);
      const std::vector<std::int64_t> slots{5, 0, 11, -1, 3, 8, 7, 2, 10};
      CacheMemory expected(dtype, 3, kKvHeads, 4, head_dim);
      RopeAndCacheArgs args{qkv.data(), positions.data(), slots.data(), nullptr, expected.view, kTokens, kHeads};
      reference::rope_and_cache(args);
      for_each_vector_target([&](std::string_view target) {
        INFO(target);
        CacheMemory cache(dtype, 3, kKvHeads, 4, head_dim);
        args.cache = cache.view;
        cpu::ThreadPool threads(2);
        cpu::rope_and_cache(threads, args);
        CHECK(same_cache(cache, expected));
      });
    }
  }
}

TEST_CASE("groups are quantized to the reference's bytes, in chunks of any size") {
  for (const Dtype dtype : {Dtype::kivi4, Dtype::kivi2}) {
    for (const int block_size : {1, 8, 32, 128}) {
      INFO(name(dtype) << " block_size " << block_size);
      KiviCase expected(dtype, block_size, 32);
      expected.advance(0, 200, [](const KiviArgs& args) {
        reference::quantize_groups(args);
        reference::keep_residual(args);
      });
      for (const int chunk : {1, 8, 25, 40, 200}) {
        INFO("chunk " << chunk);
        KiviCase work(dtype, block_size, 32);
        cpu::ThreadPool threads(2);
        cpu::Workspace workspace;
        for (int computed = 0; computed < 200; computed += chunk)
          work.advance(computed, chunk, [&](const KiviArgs& args) {
            cpu::quantize_groups(threads, workspace, args);
            cpu::keep_residual(threads, args);
          });
        CHECK(same_cache(work.cache, expected.cache));
        CHECK(work.residual_k == expected.residual_k);
        CHECK(work.residual_v == expected.residual_v);
      }
    }
  }
}

TEST_CASE("a kivi cache stores no token by itself and rounds K and V to F16") {
  constexpr int kTokens = 3, kWidth = 4 * 32;  // two query heads and one KV head of 32
  TensorSource source(9);
  const std::vector<float> qkv = source.floats(kTokens * kWidth);
  std::vector<float> expected = qkv;
  for (std::size_t i = 0; i < qkv.size(); ++i)
    if (i % kWidth >= 2 * 32) expected[i] = f32_from_f16(f16_from_f32(expected[i]));
  const std::int32_t positions[] = {0, 1, 2};
  const std::int64_t slots[] = {0, 1, 2};
  CacheMemory cache(Dtype::kivi4, 1, 1, 32, 32);
  const CacheMemory untouched = cache;
  std::uint16_t residual = 0;
  cache.view.extras = KiviExtras{{&residual, &residual, 32}};
  const auto check = [&](auto&& kernel) {
    std::vector<float> buffer = qkv;
    kernel(RopeAndCacheArgs{buffer.data(), positions, slots, nullptr, cache.view, kTokens, 2});
    CHECK(buffer == expected);
    CHECK(same_cache(cache, untouched));
  };
  check([](const RopeAndCacheArgs& args) { reference::rope_and_cache(args); });
  for_each_vector_target([&](std::string_view target) {
    INFO(target);
    cpu::ThreadPool threads(1);
    check([&](const RopeAndCacheArgs& args) { cpu::rope_and_cache(threads, args); });
  });
}

TEST_CASE("copied blocks take their scales along") {
  for (const Dtype dtype : kCachedDtypes) {
    INFO(name(dtype));
    CacheMemory cache(dtype, 3, 2, 4, 32);
    const auto fill = [](std::vector<std::uint16_t>& values) { std::iota(values.begin(), values.end(), 0); };
    fill(cache.k), fill(cache.v);
    std::iota(cache.k_scales.begin(), cache.k_scales.end(), 0.0F);
    std::iota(cache.v_scales.begin(), cache.v_scales.end(), 100.0F);
    const std::int32_t pairs[] = {0, 2, 2, 1};
    reference::copy_blocks({cache.view, pairs, 2});
    const auto is_repeated = [](const auto& values) {
      const std::size_t block = values.size() / 3;
      for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != values[i % block]) return false;
      return true;
    };
    CHECK(is_repeated(cache.k));
    CHECK(is_repeated(cache.v));
    CHECK(is_repeated(cache.k_scales));
    CHECK(is_repeated(cache.v_scales));
  }
}

}  // namespace dculab::kernels

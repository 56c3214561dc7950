// KVQuant's cache: the numbers of its definition, the reference's bytes, and attention over it.
#include <cstring>
#include <span>

#include "kernels/cpu/kv/kv_kernels.hpp"
#include "tests/kernels/paged_sequences.hpp"

namespace dculab::kernels {
namespace {

constexpr Dtype kKvQuants[] = {Dtype::kvquant4, Dtype::kvquant3, Dtype::kvquant2};

bool same_kvquant_cache(const CacheMemory& a, const CacheMemory& b) {
  return same_bytes(a.k, b.k) && same_bytes(a.v, b.v) && same_bytes(a.k_outliers, b.k_outliers) &&
         same_bytes(a.v_outliers, b.v_outliers) && same_bytes(a.kvquant_scales, b.kvquant_scales);
}

double loaded(const CacheMemory& cache, reference::KvTensor tensor, int head, int token, int d) {
  const std::int32_t table = 0;
  return reference::load_kvquant(cache.view, &table, tensor, head, token, d);
}

}  // namespace

TEST_CASE("KVQuant by hand: levels of a channel's range by their bounds, and the value farthest out in F16") {
  CacheMemory cache(Dtype::kvquant2, 1, 1, 8, 8);
  const std::vector<float> calibration{-1,      -0.25F, 0.5F,  1,                  // levels of K
                                       -1,      -0.5F,  0.5F,  1,                  // of V
                                       -0.625F, 0.125F, 0.75F,                     // bounds of K's codes: in the middle
                                       -0.75F,  0,      0.9F,                      // of V's: the last is farther out
                                       10,      0,      0,     0, 0, 0, 0, 0,      // centres of K's channels
                                       2,       1,      1,     1, 1, 1, 1, 0.5F};  // half of their ranges
  cache.calibration = calibration;
  auto extras = cache.view.extras.as<KvQuantExtras>();
  extras.calibration = cache.calibration.data();
  cache.view.extras = extras;
  //                       8.1 is at -0.95   near -0.25     the one farthest out: 3 half ranges
  const std::vector<float> k{8.1F, -0.4F, 0.2F, 0.9F, -2, 0, -0.7F, 1.5F};
  // Without 7, from -3 to 5: around 1, and 4 to either side. 4.4 is at 0.85.
  const std::vector<float> v{5, -3, 7, 1.5F, 3.2F, -1, 4.4F, 0};
  reference::store_kvquant(cache.view, 3, k.data(), v.data());
  const double expected_k[] = {8, -0.25, 0.5, 1, -1, -0.25, -1, 1.5};
  const double expected_v[] = {5, -3, 7, 3, 3, -1, 3, -1};
  for (int d = 0; d < 8; ++d) {
    INFO(d);
    CHECK(loaded(cache, reference::KvTensor::k, 0, 3, d) == expected_k[d]);
    CHECK(loaded(cache, reference::KvTensor::v, 0, 3, d) == expected_v[d]);
  }
  // 1.5 of the last channel is 3 half ranges out, -2 of another 2; 7 is the largest of V.
  CHECK(cache.k_outliers[3].channel == 7);
  CHECK(cache.v_outliers[3].channel == 2);
  CHECK(f32_from_f16(cache.kvquant_scales[3].centre) == 1.0F);
  CHECK(f32_from_f16(cache.kvquant_scales[3].half_range) == 4.0F);
}

TEST_CASE("KVQuant rotates a key where it is read, by its place in the sequence") {
  CacheMemory cache(Dtype::kvquant4, 1, 2, 8, 8);
  const std::vector<float> cos_sin = rotation_angles(8, 4, 0.1F);
  TensorSource source(3);
  const std::vector<float> k = source.floats(16), v = source.floats(16);
  reference::store_kvquant(cache.view, 5, k.data(), v.data());
  std::vector<double> plain;
  for (int d = 0; d < 8; ++d) plain.push_back(loaded(cache, reference::KvTensor::k, 1, 5, d));
  auto extras = cache.view.extras.as<KvQuantExtras>();
  extras.cos_sin = cos_sin.data(), extras.rotary_dim = 4;
  for (const bool neighbours : {false, true}) {
    extras.neighbours = neighbours;
    cache.view.extras = extras;
    for (int pair = 0; pair < 2; ++pair) {
      const int a = neighbours ? 2 * pair : pair, b = neighbours ? a + 1 : a + 2;
      const auto at = [&](int d) { return plain[static_cast<std::size_t>(d)]; };
      const double cosine = cos_sin[static_cast<std::size_t>(5 * 4 + pair)];
      const double sine = cos_sin[static_cast<std::size_t>(5 * 4 + 2 + pair)];
      CHECK(std::abs(loaded(cache, reference::KvTensor::k, 1, 5, a) - (at(a) * cosine - at(b) * sine)) <= 1e-12);
      CHECK(std::abs(loaded(cache, reference::KvTensor::k, 1, 5, b) - (at(b) * cosine + at(a) * sine)) <= 1e-12);
    }
    CHECK(loaded(cache, reference::KvTensor::k, 1, 5, 6) == plain[6]);  // beyond rotary_dim
  }
}

TEST_CASE("KVQuant: stored as the reference stores it, before the keys are rotated") {
  constexpr int kTokens = 9, kHeads = 3, kKvHeads = 2;
  const std::vector<std::int64_t> slots{5, 0, 11, -1, 3, -1, 7, 2, 10};
  for (const Dtype dtype : kKvQuants)
    for (const int head_dim : {8, 24, 64, 128}) {
      INFO(name(dtype) << " head_dim " << head_dim);
      TensorSource source(3);
      const int width = (kHeads + 2 * kKvHeads) * head_dim;
      std::vector<float> qkv = source.floats(static_cast<std::size_t>(kTokens * width));
      for (std::size_t i = 0; i < qkv.size(); i += 37) qkv[i] *= 20;
      std::fill_n(qkv.begin() + 2 * width, width, 0.0F);   // a token of zeros
      std::fill_n(qkv.begin() + 4 * width, width, -1.5F);  // one whose values are all as far out
      const std::vector<std::int32_t> positions{0, 1, 2, 3, 4, 5, 6, 7, 8};
      const std::vector<float> cos_sin = rotation_angles(kTokens, head_dim, 0.1F);
      CacheMemory expected(dtype, 3, kKvHeads, 4, head_dim);
      const auto args = [&](std::vector<float>& buffer, const KvCacheView& view) {
        return RopeAndCacheArgs{buffer.data(), positions.data(), slots.data(), cos_sin.data(), view, kTokens, kHeads};
      };
      std::vector<float> buffer = qkv;
      reference::rope_and_cache(args(buffer, expected.view));
      for_each_vector_target([&](std::string_view target) {
        INFO(target);
        CacheMemory cache(dtype, 3, kKvHeads, 4, head_dim);
        cpu::ThreadPool threads(2);
        std::vector<float> own = qkv;
        cpu::rope_and_cache(threads, args(own, cache.view));
        CHECK(same_kvquant_cache(cache, expected));
        CHECK(cache.kvquant_scales[8].centre == 0xFFFF);  // not written
      });
    }
}

TEST_CASE("KVQuant: attention agrees with the reference, with rotated keys too") {
  for (const Dtype dtype : kKvQuants)
    for (const AttentionShape& shape :
         {AttentionShape{4, 2, 64, dtype}, {3, 3, 24, dtype}, {8, 1, 128, dtype}, {2, 2, 8, dtype, 50}}) {
      PagedSequences sequences(shape, {1, 70, 300});
      const std::vector<float> cos_sin = rotation_angles(300, shape.head_dim, 0.1F);
      for (const int block_size : {1, 16, 64})
        for (const bool rotates : {false, true}) {
          sequences.page(block_size);
          const std::vector<NewTokens> calls{{0, 1, 1}, {1, 70, 70}, {2, 300, 3}};
          const auto with = [&](auto&& kernel) {
            return sequences.run(calls, [&](PagedAttentionArgs args) {
              auto extras = args.cache.extras.as<KvQuantExtras>();
              if (rotates) extras.cos_sin = cos_sin.data();
              args.cache.extras = extras;
              kernel(args);
            });
          };
          const std::vector<float> expected =
              with([](const PagedAttentionArgs& args) { reference::paged_attention(args); });
          for_each_vector_target([&](std::string_view target) {
            INFO(name(dtype) << " " << target << " head_dim " << shape.head_dim << " block_size " << block_size);
            cpu::ThreadPool threads(2);
            cpu::Workspace workspace;
            const std::vector<float> got =
                with([&](const PagedAttentionArgs& args) { cpu::paged_attention(threads, workspace, args); });
            // Scores of size about 8 in F32, values below 4.
            CHECK(largest_difference(got, expected) <= 2e-5);
          });
        }
    }
}

TEST_CASE("KVQuant: attention has the same bits for any threads, blocks, batch and chunks") {
  for (const Dtype dtype : kKvQuants) {
    PagedSequences sequences({4, 2, 64, dtype}, {200, 90});
    for_each_vector_target([&](std::string_view target) {
      INFO(name(dtype) << " " << target);
      sequences.page(16);
      const std::vector<float> expected = sequences.on_cpu({{0, 200, 200}, {1, 90, 90}}, 1);
      for (const int block_size : {1, 64}) {
        sequences.page(block_size);
        std::vector<float> got;
        for (int begin = 0; begin < 200; begin += 7) {
          const int end = std::min(200, begin + 7);
          const std::vector<float> part = sequences.on_cpu({{0, end, end - begin}}, 3);
          got.insert(got.end(), part.begin(), part.end());
        }
        CHECK(std::equal(got.begin(), got.end(), expected.begin()));
      }
    });
  }
}

TEST_CASE("KVQuant: copied blocks take outliers and scales along") {
  CacheMemory cache(Dtype::kvquant3, 3, 2, 4, 64);
  TensorSource source(7);
  for (int slot = 0; slot < 12; ++slot) {
    const std::vector<float> k = source.floats(128), v = source.floats(128);
    cpu::store_kvquant(cache.view, slot, k.data(), v.data());
  }
  const std::int32_t pair[] = {2, 0};
  reference::copy_blocks({cache.view, pair, 1});
  const std::int32_t from = 2, to = 0;
  for (const auto tensor : {reference::KvTensor::k, reference::KvTensor::v})
    for (int token = 0; token < 4; ++token)
      for (int d = 0; d < 64; ++d)
        REQUIRE(reference::load_kvquant(cache.view, &to, tensor, 1, token, d) ==
                reference::load_kvquant(cache.view, &from, tensor, 1, token, d));
}

TEST_CASE("kernels that need rows refuse a KVQuant cache, and one without calibration") {
  cpu::ThreadPool threads(1);
  cpu::Workspace workspace;
  PagedAttentionArgs args;
  args.cache.dtype = Dtype::kvquant4, args.cache.head_dim = 64;
  CHECK_THROWS_WITH(cpu::paged_attention(threads, workspace, args), ContainsSubstring("calibration"));
  CHECK_THROWS_WITH(cpu::attention_scores(threads, workspace, {.attention = args}), ContainsSubstring("lie in rows"));
}

}  // namespace dculab::kernels

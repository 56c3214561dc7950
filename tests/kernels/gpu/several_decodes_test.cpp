// Does the GPU's decode attention of several new tokens of a sequence, chains and trees, agree with the reference?
#include "tests/kernels/gpu/decode_case.hpp"

namespace dculab::kernels::gpu {
namespace {

void check_decode(const DecodeShape& shape, const DecodeCut& cut = {}) {
  CAPTURE(name(shape.cache), shape.head_dim, shape.block_size, shape.group_size, shape.sliding_window,
          cut.partition_tokens);
  const DecodeCase decode(shape);
  for_each_device([&](Device& device) {
    const std::vector<float> got = decode.run(device, cut);
    REQUIRE(got.size() == decode.expected().size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double expected = decode.expected()[i];
      INFO("value " << i << ": " << got[i] << ", expected " << expected);
      if (!(std::abs(got[i] - expected) <= decode.tolerance(expected))) FAIL_CHECK("too far");
    }
  });
}

}  // namespace

// The lists have 4, 7, 3 and 5 entries: without common divisors.
TEST_CASE("GPU decode attention of trees and chains agrees for each format, head size, block size and group", "[gpu]") {
  constexpr Dtype kCaches[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2};
  constexpr int kHeadDims[] = {32, 64, 80, 96, 112, 128, 256};
  constexpr int kBlockSizes[] = {1, 16, 64};
  constexpr int kGroupSizes[] = {1, 4, 7, 2, 8};
  for (unsigned i = 0; i < 35; ++i) {
    DecodeShape shape;
    shape.cache = kCaches[i % 4], shape.head_dim = kHeadDims[i % 7];
    shape.block_size = kBlockSizes[i % 3], shape.group_size = kGroupSizes[i % 5];
    shape.query = i % 5 < 3 ? Dtype::f16 : Dtype::f32, shape.out = i % 3 == 0 ? Dtype::f16 : Dtype::f32;
    shape.num_kv_heads = shape.group_size <= 4 ? 2 : 1;
    shape.contexts = {static_cast<int>(9 + i), 6, 40, 21};  // a tree, one alone, the last level of one, a chain
    shape.tokens = {7, 6, 3, 5}, shape.trees = {7, 6, 11, 0};
    CAPTURE(i);
    check_decode(shape);
  }
}

TEST_CASE("GPU decode attention of more rows than a workgroup serves agrees, up to the largest tree", "[gpu]") {
  const auto cache = GENERATE(Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3);
  check_decode({.cache = cache,
                .head_dim = 128,
                .num_kv_heads = 1,
                .group_size = 3,
                .block_size = 8,
                .contexts = {100, 4},
                .tokens = {64, 1},
                .trees = {64, 0}});
}

TEST_CASE("GPU decode attention of trees: partitions, ALiBi, windows and a soft cap", "[gpu]") {
  const auto cache = GENERATE(Dtype::f16, Dtype::bf16);
  const bool has_alibi = GENERATE(false, true);
  const int window = GENERATE(0, 1, 5, 37);
  for (const int partition : {0, 16, 24})
    check_decode({.cache = cache,
                  .head_dim = 64,
                  .num_kv_heads = 1,
                  .group_size = 2,
                  .block_size = 16,
                  .contexts = {9, 60, 85, 17},
                  .has_alibi = has_alibi,
                  .sliding_window = window,
                  .logit_soft_cap = window == 5 ? 2.0F : 0.0F,
                  .tokens = {9, 4, 12, 1},
                  .trees = {9, 20, 0, 0}},
                 {0, partition});
}

TEST_CASE("GPU decode attention of chains needs no masks, and of one token is that of one", "[gpu]") {
  DecodeShape shape{.head_dim = 64, .group_size = 4, .contexts = {30, 5, 47}, .tokens = {3, 5, 1}};
  check_decode(shape);
  check_decode(shape, {0, 16});
  shape.tokens = {1, 1, 1};
  check_decode(shape, {0, 16});
}

}  // namespace dculab::kernels::gpu

// The kernels that newer families need: norms of heads, norms after a layer's halves, GeGLU, soft caps, partial
// rotation.
#include <cmath>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels {
namespace {

constexpr float kEpsilon = 1e-5F;

double worst_relative(const std::vector<float>& values, const std::vector<float>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    worst = std::max(worst, std::abs(double{values[i]} - expected[i]) / (std::abs(double{expected[i]}) + 1e-30));
  return worst;
}

}  // namespace

TEST_CASE("head_norm agrees with the reference and leaves what follows the heads") {
  cpu::ThreadPool threads(2);
  for (const Dtype dtype : kStoredDtypes)
    for (const auto& [tokens, heads, head_dim] : {std::tuple{1, 1, 8}, {3, 5, 16}, {40, 8, 128}, {2, 1, 1000}}) {
      TensorSource source(7);
      const int stride = heads * head_dim + 24;
      const std::vector<float> x = source.floats(static_cast<std::size_t>(tokens * stride));
      const std::vector<std::byte> weight = source.stored(static_cast<std::size_t>(head_dim), dtype);
      for (const float offset : {0.0F, 1.0F}) {
        std::vector<float> expected = x, out;
        HeadNormArgs args{expected.data(), stride, {weight.data(), dtype, head_dim}, tokens, heads, head_dim,
                          kEpsilon,        offset};
        reference::head_norm(args);
        for_each_vector_target([&](std::string_view target) {
          INFO(target << " " << name(dtype) << " " << heads << " heads of " << head_dim);
          out = x;
          args.x = out.data();
          cpu::head_norm(threads, args);
          CHECK(largest_difference(out, expected) <= 2e-5);
          for (int token = 0; token < tokens; ++token) {
            const auto rest = static_cast<std::size_t>(token * stride + heads * head_dim);
            CHECK(std::equal(x.begin() + std::ptrdiff_t(rest), x.begin() + std::ptrdiff_t(rest) + 24,
                             out.begin() + std::ptrdiff_t(rest)));
          }
        });
      }
    }
}

TEST_CASE("rms_norm adds its offset to every weight, embedding multiplies rows by its scale") {
  cpu::ThreadPool threads(2);
  TensorSource source(8);
  constexpr int kWidth = 67, kTokens = 3;
  std::vector<float> residual = source.floats(kTokens * kWidth), expected(residual.size()), out(residual.size());
  const std::vector<float> weight = source.floats(kWidth);
  std::vector<float> raised = weight;
  for (float& each : raised) each += 1.0F;
  RmsNormArgs args{nullptr, residual.data(), {raised.data(), Dtype::f32, kWidth}, expected.data(), kTokens, kWidth};
  cpu::rms_norm(threads, args);
  args.weight.data = weight.data(), args.weight_offset = 1.0F, args.out = out.data();
  cpu::rms_norm(threads, args);
  CHECK(out == expected);

  const std::vector<std::int32_t> ids{2, 0, 1};
  EmbeddingArgs rows{ids.data(), {residual.data(), Dtype::f32, kTokens}, out.data(), kTokens, kWidth, 2.5F};
  cpu::embedding(threads, rows);
  for (std::size_t i = 0; i < kWidth; ++i) CHECK(out[i] == residual[2 * kWidth + i] * 2.5F);
}

TEST_CASE("residual_add adds what is given, and hands on the residual") {
  cpu::ThreadPool threads(2);
  for (const std::size_t count : {1U, 100U, 4096U, 10007U}) {
    TensorSource source(9);
    const std::vector<float> x = source.floats(count), before = source.floats(count);
    for (const float* added : {x.data(), static_cast<const float*>(nullptr)})
      for_each_vector_target([&](std::string_view target) {
        INFO(target << " " << count);
        std::vector<float> residual = before, out(count, NAN), expected = before, expected_out(count);
        reference::residual_add({added, expected.data(), expected_out.data(), static_cast<std::int64_t>(count)});
        cpu::residual_add(threads, {added, residual.data(), out.data(), static_cast<std::int64_t>(count)});
        CHECK(residual == expected);
        CHECK(out == expected_out);
      });
  }
}

TEST_CASE("soft_cap and gelu_mul agree with the reference, also far from zero") {
  cpu::ThreadPool threads(2);
  TensorSource source(10);
  constexpr int kWidth = 5000, kTokens = 2;
  std::vector<float> gate_up = source.floats(2 * kTokens * kWidth, 20.0F);
  gate_up[0] = -300.0F, gate_up[1] = 300.0F, gate_up[2] = 0.0F;
  std::vector<float> expected = gate_up;
  reference::soft_cap({expected.data(), static_cast<std::int64_t>(expected.size()), 30.0F});
  for_each_vector_target([&](std::string_view target) {
    INFO(target);
    std::vector<float> out = gate_up;
    cpu::soft_cap(threads, {out.data(), static_cast<std::int64_t>(out.size()), 30.0F});
    CHECK(largest_difference(out, expected) <= 1e-5);
  });
  for (const GeluKind kind : {GeluKind::erf, GeluKind::tanh}) {
    std::vector<float> gated(kTokens * kWidth), out(gated.size(), NAN);
    reference::gelu_mul({gate_up.data(), gated.data(), kTokens, kWidth, kind});
    for_each_vector_target([&](std::string_view target) {
      INFO(target << " " << (kind == GeluKind::erf ? "erf" : "tanh"));
      cpu::gelu_mul(threads, {gate_up.data(), out.data(), kTokens, kWidth, kind});
      CHECK(largest_difference(out, gated) <= 1e-3);
      std::vector<float> near_out, near_expected;
      for (std::size_t i = 0; i < out.size(); ++i)
        if (std::abs(gated[i]) > 1e-3F) near_out.push_back(out[i]), near_expected.push_back(gated[i]);
      CHECK(worst_relative(near_out, near_expected) <= 1e-5);
    });
  }
}

TEST_CASE("rope_and_cache turns the part of a head that it is told to, in halves or in neighbours") {
  cpu::ThreadPool threads(2);
  constexpr int kTokens = 5, kHeads = 3, kKvHeads = 1, kPositions = 20;
  for (const int head_dim : {16, 64, 128})
    for (const int rotary_dim : {head_dim, head_dim / 2, head_dim / 4})
      for (const bool neighbours : {false, true}) {
        TensorSource source(11);
        const std::vector<float> qkv =
            source.floats(static_cast<std::size_t>(kTokens * (kHeads + 2 * kKvHeads) * head_dim));
        const std::vector<float> cos_sin = source.floats(static_cast<std::size_t>(kPositions * rotary_dim));
        const std::vector<std::int32_t> positions{3, 19, 0, 7, 7};
        const std::vector<std::int64_t> slots(kTokens, -1);
        RopeAndCacheArgs args{
            .positions = positions.data(),
            .slot_mapping = slots.data(),
            .cos_sin = cos_sin.data(),
            .cache = {.num_blocks = 1, .num_kv_heads = kKvHeads, .block_size = 8, .head_dim = head_dim},
            .num_tokens = kTokens,
            .num_heads = kHeads,
            .rotary_dim = rotary_dim,
            .neighbours = neighbours};
        std::vector<float> expected = qkv;
        args.qkv = expected.data();
        reference::rope_and_cache(args);
        CHECK(expected != qkv);
        for_each_vector_target([&](std::string_view target) {
          INFO(target << " " << rotary_dim << " of " << head_dim << (neighbours ? ", neighbours" : ", halves"));
          std::vector<float> out = qkv;
          args.qkv = out.data();
          cpu::rope_and_cache(threads, args);
          CHECK(largest_difference(out, expected) <= 4e-6);
          const auto last = static_cast<std::size_t>(head_dim - 1);
          if (rotary_dim < head_dim) CHECK(out[last] == qkv[last]);
        });
      }
}

}  // namespace dculab::kernels

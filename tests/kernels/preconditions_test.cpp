// Do the CPU kernels refuse what they cannot compute, and say what it is?
#include <stdexcept>

#include "kernels/cpu/kv/kv_kernels.hpp"
#include "tests/kernels/paged_sequences.hpp"

namespace dculab::kernels {
namespace {

// The message of the refusal, or "" when there was none.
template <typename Call>
std::string refusal_of_call(Call&& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the CPU matmul refuses rounded activations that its weights do not go with") {
  cpu::ThreadPool threads(1);
  cpu::Workspace workspace;
  const std::vector<float> x(8);
  const std::vector<std::uint16_t> w(8);
  std::vector<float> y(1);
  const auto message = [&](Dtype weights, int k, ActivationMode activations) {
    MatmulArgs args;
    args.x = x.data(), args.y = y.data(), args.m = 1, args.k = k, args.activations = activations;
    args.weights[0] = {w.data(), weights, 1, weights == Dtype::int8 ? 8 : 0};
    return refusal_of_call([&] { cpu::matmul(threads, workspace, args); });
  };
  CHECK(message(Dtype::bf16, 8, ActivationMode::bf16).empty());
  CHECK_THAT(message(Dtype::bf16, 7, ActivationMode::bf16), ContainsSubstring("an even number of in-features"));
  CHECK_THAT(message(Dtype::f16, 8, ActivationMode::bf16), ContainsSubstring("need BF16 weights"));
  CHECK_THAT(message(Dtype::f16, 8, ActivationMode::int8), ContainsSubstring("no 8-bit activations"));
  CHECK_THAT(message(Dtype::int8, 8, ActivationMode::bf16), ContainsSubstring("no BF16 activations"));
}

TEST_CASE("CPU attention refuses a negative window and KV caches that it cannot read") {
  cpu::ThreadPool threads(1);
  cpu::Workspace workspace;
  const PagedSequences sequences({4, 2, 8, Dtype::f16}, {9});
  const auto message = [&](auto&& change) {
    return refusal_of_call([&] {
      (void)sequences.run({{0, 9, 1}}, [&](PagedAttentionArgs args) {
        change(args);
        cpu::paged_attention(threads, workspace, args);
      });
    });
  };
  CHECK(message([](PagedAttentionArgs&) {}).empty());
  CHECK_THAT(message([](PagedAttentionArgs& args) { args.sliding_window = -4; }), ContainsSubstring("sliding window"));
  const auto refused_as = [&](Dtype dtype) {
    return message([&](PagedAttentionArgs& args) { args.cache.dtype = dtype; });
  };
  CHECK_THAT(refused_as(Dtype::int4), ContainsSubstring("KV cache in int4"));
  CHECK_THAT(refused_as(Dtype::kivi2), ContainsSubstring("a head_dim that is a multiple of 32"));
  CHECK_THAT(message([](PagedAttentionArgs& args) {
               args.cache.dtype = Dtype::int8;
               args.cache.extras = {};
             }),
             ContainsSubstring("an int8 KV cache needs scales"));
}

TEST_CASE("the other CPU kernels refuse formats they do not read or write") {
  cpu::ThreadPool threads(1);
  cpu::Workspace workspace;
  RopeAndCacheArgs rope;
  rope.cache.dtype = Dtype::int3;
  CHECK_THAT(refusal_of_call([&] { cpu::rope_and_cache(threads, rope); }), ContainsSubstring("rope_and_cache"));
  KiviArgs kivi;
  kivi.cache.dtype = Dtype::f16;
  CHECK_THAT(refusal_of_call([&] { cpu::quantize_groups(threads, workspace, kivi); }),
             ContainsSubstring("neither kivi4 nor"));
  CHECK_THAT(refusal_of_call([&] { cpu::keep_residual(threads, kivi); }), ContainsSubstring("neither kivi4 nor kivi2"));
  kivi.cache.dtype = Dtype::kivi4, kivi.cache.head_dim = 64;
  CHECK_THAT(refusal_of_call([&] { cpu::keep_residual(threads, kivi); }),
             ContainsSubstring("a residual of a multiple of 32"));
  RmsNormArgs norm;
  norm.weight.dtype = Dtype::fp8_e4m3;
  CHECK_THAT(refusal_of_call([&] { cpu::rms_norm(threads, norm); }), ContainsSubstring("rms_norm: weight in fp8_e4m3"));
  EmbeddingArgs embedding;
  embedding.table.dtype = Dtype::int8;
  CHECK_THAT(refusal_of_call([&] { cpu::embedding(threads, embedding); }),
             ContainsSubstring("embedding: table in int8"));
  MatmulArgs matmul;
  matmul.num_weights = 2, matmul.weights[1].dtype = Dtype::int4;
  CHECK_THAT(refusal_of_call([&] { cpu::matmul(threads, workspace, matmul); }),
             ContainsSubstring("matmul: weight in int4"));
}

}  // namespace dculab::kernels

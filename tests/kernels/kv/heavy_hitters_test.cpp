// H2O's attention sums: against the reference, and the same bits however the work is arranged.
#include "kernels/cpu/kv/kv_kernels.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/paged_sequences.hpp"

namespace dculab::kernels {
namespace {

// Sums per call of `calls`, each [num_kv_heads, stride], after they were `before`.
using Sums = std::vector<std::vector<float>>;

constexpr int kStride = 1100;

template <typename Kernel>
void add_scores(const PagedSequences& sequences, const std::vector<NewTokens>& calls, Sums& sums, Kernel&& kernel) {
  sequences.run(calls, [&](const PagedAttentionArgs& attention) {
    std::vector<float*> pointers;
    for (const NewTokens& call : calls) pointers.push_back(sums[static_cast<std::size_t>(call.sequence)].data());
    AttentionScoresArgs args;
    args.attention = attention, args.sums = pointers.data(), args.sums_stride = kStride;
    kernel(args);
  });
}

void add_on_cpu(const PagedSequences& sequences, const std::vector<NewTokens>& calls, Sums& sums, int num_threads = 2) {
  cpu::ThreadPool threads(num_threads);
  cpu::Workspace workspace;
  add_scores(sequences, calls, sums,
             [&](const AttentionScoresArgs& args) { cpu::attention_scores(threads, workspace, args); });
}

Sums zeros(std::size_t sequences, int num_kv_heads) {
  return Sums(sequences, std::vector<float>(static_cast<std::size_t>(num_kv_heads * kStride), 0.0F));
}

constexpr AttentionShape kScoredShapes[] = {
    {8, 2, 64, Dtype::f16},      {4, 4, 80, Dtype::bf16},     {6, 1, 16, Dtype::f32}, {7, 1, 128, Dtype::f16},
    {4, 2, 80, Dtype::fp8_e4m3}, {4, 2, 32, Dtype::fp8_e5m2}, {4, 2, 24, Dtype::int8}};

}  // namespace

TEST_CASE("attention scores agree with the reference") {
  for (const AttentionShape& shape : kScoredShapes) {
    PagedSequences sequences(shape, {1, 70, 1030});
    for (const int block_size : {1, 16, 256}) {
      sequences.page(block_size);
      const std::vector<NewTokens> calls{{0, 1, 1}, {1, 70, 70}, {2, 1030, 3}};
      Sums expected = zeros(3, shape.num_kv_heads);
      add_scores(sequences, calls, expected,
                 [](const AttentionScoresArgs& args) { reference::attention_scores(args); });
      for_each_vector_target([&](std::string_view target) {
        INFO(target << " head_dim " << shape.head_dim << " block_size " << block_size);
        Sums sums = zeros(3, shape.num_kv_heads);
        add_on_cpu(sequences, calls, sums);
        // Up to 70 tokens of a group add weights of at most 1, each with the relative error of a score of size about 4
        // and of exp.
        for (std::size_t s = 0; s < 3; ++s) CHECK(largest_difference(sums[s], expected[s]) <= 2e-6 * 70);
      });
    }
  }
}

TEST_CASE("each new token hands out one unit of attention per head") {
  const AttentionShape shape{6, 2, 32, Dtype::f16};
  const PagedSequences sequences(shape, {50});
  Sums sums = zeros(1, 2);
  add_on_cpu(sequences, {{0, 50, 20}}, sums);
  for (int head = 0; head < 2; ++head) {
    double total = 0;
    for (int i = 0; i < kStride; ++i) total += sums[0][static_cast<std::size_t>(head * kStride + i)];
    CHECK(std::abs(total - 20 * 3) <= 1e-4);
    CHECK(sums[0][static_cast<std::size_t>(head * kStride + 50)] == 0.0F);  // beyond the context
  }
}

TEST_CASE("attention scores have the same bits for any threads, blocks, batch and chunks") {
  for (const AttentionShape& shape : kScoredShapes) {
    PagedSequences sequences(shape, {300, 90});
    for_each_vector_target([&](std::string_view target) {
      INFO(target << " head_dim " << shape.head_dim);
      sequences.page(16);
      Sums expected = zeros(2, shape.num_kv_heads);
      add_on_cpu(sequences, {{0, 300, 300}, {1, 90, 90}}, expected, 1);
      for (const int block_size : {1, 64, 256}) {
        sequences.page(block_size);
        Sums sums = zeros(2, shape.num_kv_heads);
        add_on_cpu(sequences, {{1, 90, 90}}, sums, 3);
        for (int begin = 0; begin < 300; begin += 7) {
          const int end = std::min(300, begin + 7);
          add_on_cpu(sequences, {{0, end, end - begin}}, sums);
        }
        CHECK(sums == expected);
      }
    });
  }
}

TEST_CASE("attention scores refuse what they do not serve") {
  cpu::ThreadPool threads(1);
  cpu::Workspace workspace;
  AttentionScoresArgs args;
  args.attention.cache.dtype = Dtype::kivi4;
  CHECK_THROWS_WITH(cpu::attention_scores(threads, workspace, args), ContainsSubstring("lie in rows"));
  args.attention.cache.dtype = Dtype::int8;
  CHECK_THROWS_WITH(cpu::attention_scores(threads, workspace, args), ContainsSubstring("int8 KV cache needs scales"));
  args.attention.cache.dtype = Dtype::f16;
  args.attention.sliding_window = 5;
  CHECK_THROWS_WITH(cpu::attention_scores(threads, workspace, args), ContainsSubstring("sliding window"));
}

}  // namespace dculab::kernels

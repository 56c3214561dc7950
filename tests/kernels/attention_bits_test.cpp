// Does a token's attention keep its bits, however the work around it is arranged?
#include "tests/kernels/paged_sequences.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::kernels {
namespace {

constexpr AttentionShape kComparedShapes[] = {{8, 2, 64, Dtype::f16},
                                              {4, 4, 80, Dtype::bf16},
                                              {6, 1, 16, Dtype::f32},
                                              {2, 1, 128, Dtype::f16},
                                              {6, 6, 32, Dtype::f16, 0, Alibi::on},
                                              {4, 2, 32, Dtype::f16, 100},
                                              {4, 4, 32, Dtype::f16, 5},
                                              {4, 1, 24, Dtype::f16},
                                              {2, 2, 40, Dtype::fp8_e5m2},
                                              {4, 1, 32, Dtype::bf16, 530, Alibi::on},
                                              {4, 2, 64, Dtype::int8},
                                              {4, 1, 32, Dtype::fp8_e4m3},
                                              {8, 2, 64, Dtype::kivi4, 0, Alibi::off, 128},
                                              {4, 4, 32, Dtype::kivi2, 0, Alibi::off, 64},
                                              {4, 1, 32, Dtype::int8, 100, Alibi::on},
                                              {4, 1, 32, Dtype::kivi4, 100, Alibi::on, 64}};

// All of sequence `s` in chunks of `chunk` tokens.
std::vector<float> in_chunks(const PagedSequences& sequences, int s, int length, int chunk) {
  cpu::ThreadPool threads(2);
  std::vector<float> out;
  for (int begin = 0; begin < length; begin += chunk) {
    const int end = std::min(length, begin + chunk);
    const std::vector<float> part = sequences.on_cpu({{s, end, end - begin}}, threads);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

}  // namespace

TEST_CASE("attention has the same bits on any number of threads and for any block size") {
  for (const AttentionShape& shape : kComparedShapes) {
    PagedSequences sequences(shape, {700, 1030, 40});
    const std::vector<NewTokens> calls{{0, 700, 700}, {1, 1030, 1}, {2, 40, 9}};
    for_each_vector_target([&](std::string_view target) {
      INFO(target << " head_dim " << shape.head_dim);
      sequences.page(16);
      const std::vector<float> expected = sequences.on_cpu(calls, 1);
      for (const int num_threads : {2, 3}) CHECK(sequences.on_cpu(calls, num_threads) == expected);
      for (const int block_size : {1, 2, 4, 8, 32, 64, 128, 256}) {
        if (thinned_out(static_cast<std::size_t>(block_size), 16) && block_size != 1) continue;
        INFO("block_size " << block_size);
        sequences.page(block_size);
        CHECK(sequences.on_cpu(calls) == expected);
      }
    });
  }
}

TEST_CASE("attention has the same bits alone and in any batch") {
  for (const AttentionShape& shape : kComparedShapes) {
    const PagedSequences sequences(shape, {600, 1030, 40});
    for_each_vector_target([&](std::string_view target) {
      INFO(target << " head_dim " << shape.head_dim);
      const std::vector<float> first = sequences.on_cpu({{0, 600, 1}});
      const std::vector<float> second = sequences.on_cpu({{1, 1030, 33}});
      std::vector<float> both = first;
      both.insert(both.end(), second.begin(), second.end());
      CHECK(sequences.on_cpu({{0, 600, 1}, {1, 1030, 33}}) == both);
      const std::vector<float> three = sequences.on_cpu({{2, 40, 40}, {1, 1030, 33}, {0, 600, 1}});
      CHECK(std::equal(first.rbegin(), first.rend(), three.rbegin()));
    });
  }
}

TEST_CASE("attention has the same bits in one prefill, in chunks of any size and token by token") {
  for (const AttentionShape& shape : kComparedShapes) {
    const PagedSequences sequences(shape, {600});
    for_each_vector_target([&](std::string_view target) {
      INFO(target << " head_dim " << shape.head_dim);
      const std::vector<float> whole = sequences.on_cpu({{0, 600, 600}});
      for (const int chunk : {1, 3, 7, 16, 100, 512}) {
        if (kSanitized && chunk < 7) continue;
        INFO("chunk " << chunk);
        CHECK(in_chunks(sequences, 0, 600, chunk) == whole);
      }
    });
  }
}

}  // namespace dculab::kernels

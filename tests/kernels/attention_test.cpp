// Does paged attention agree with the reference for every dtype, head size, group and context?
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/paged_sequences.hpp"

namespace dculab::kernels {
namespace {

void check(const PagedSequences& sequences, const std::vector<NewTokens>& calls) {
  const std::vector<float> expected =
      sequences.run(calls, [](const PagedAttentionArgs& args) { reference::paged_attention(args); });
  for_each_vector_target([&](std::string_view target) {
    INFO(target);
    // Scores of size about 3 from 128 terms, exp within 4 ulp, weights that sum to 1 over V of size about 4.
    CHECK(largest_difference(sequences.on_cpu(calls), expected) <= 2e-6 * 4);
  });
}

}  // namespace

TEST_CASE("decode agrees with the reference at every kind of context length") {
  const std::vector<int> contexts{1, 2, 15, 16, 17, 63, 64, 65, 511, 512, 513, 1100};
  std::vector<NewTokens> calls;
  for (std::size_t i = 0; i < contexts.size(); ++i) calls.push_back({static_cast<int>(i), contexts[i], 1});
  for (const Dtype dtype : kStoredDtypes) {
    PagedSequences sequences({8, 2, 64, dtype}, contexts);
    for (const int block_size : {1, 2, 16, 256}) {
      INFO(name(dtype) << " block_size " << block_size);
      sequences.page(block_size);
      check(sequences, calls);
    }
  }
}

TEST_CASE("attention agrees with the reference for every head size and group size") {
  for (const Dtype dtype : kStoredDtypes) {
    for (const int head_dim : {8, 16, 32, 64, 80, 128}) {
      for (const auto& [heads, kv_heads] : {std::pair{4, 4}, {6, 2}, {7, 1}, {16, 2}}) {
        INFO(name(dtype) << " head_dim " << head_dim << " heads " << heads << " kv_heads " << kv_heads);
        const PagedSequences sequences({heads, kv_heads, head_dim, dtype}, {75, 20, 33});
        check(sequences, {{0, 75, 75}, {1, 20, 1}, {2, 33, 12}});
      }
    }
  }
}

TEST_CASE("prefill agrees with the reference over several partitions, whole and in chunks") {
  for (const Dtype dtype : kStoredDtypes) {
    INFO(name(dtype));
    const PagedSequences sequences({4, 1, 32, dtype}, {1100});
    check(sequences, {{0, 1100, 1100}});
    check(sequences, {{0, 1100, 100}});
    check(sequences, {{0, 1030, 7}});
  }
}

}  // namespace dculab::kernels

// Attention of several new tokens of a sequence that is decoded: chains and trees of guesses.
#include <bit>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/tree_sequences.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::kernels {
namespace {

template <typename Kernel>
std::vector<float> run(const PagedSequences& sequences, const std::vector<NewTokens>& calls, const CalledTrees& trees,
                       Kernel&& kernel) {
  return sequences.run(calls, [&](PagedAttentionArgs args) {
    args.tree = trees.view();
    kernel(args);
  });
}

void check_trees(const PagedSequences& sequences, const std::vector<NewTokens>& calls, const CalledTrees& trees) {
  cpu::ThreadPool threads(2);
  cpu::Workspace workspace;
  const std::vector<float> expected =
      run(sequences, calls, trees, [](const PagedAttentionArgs& args) { reference::paged_attention(args); });
  for_each_vector_target([&](std::string_view target) {
    INFO(target);
    const std::vector<float> actual = run(sequences, calls, trees, [&](const PagedAttentionArgs& args) {
      cpu::paged_attention(threads, workspace, args);
    });
    CHECK(largest_difference(actual, expected) <= 2e-6 * 4);  // as in attention_test.cpp
  });
}

constexpr Dtype kTreeDtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::int8};

// The block table of the places that a token sees, where a block has one token.
std::vector<std::int32_t> path_blocks(const std::int32_t* table, int tree_begin, std::uint64_t mask) {
  std::vector<std::int32_t> blocks(table, table + tree_begin);
  for (; mask != 0; mask &= mask - 1) blocks.push_back(table[tree_begin + std::countr_zero(mask)]);
  return blocks;
}

// Each token of the one sequence of a call decoded alone, behind its path. Precondition: blocks of one token.
void decode_paths(PagedAttentionArgs args, cpu::ThreadPool& threads) {
  cpu::Workspace workspace;
  const int tokens = args.query_start_loc[1], tree_begin = args.context_lens[0] - args.tree.sizes[0];
  const float* const q = args.q;
  float* const out = args.out;
  const std::int32_t* const table = args.block_tables;
  const std::uint64_t* const masks = args.tree.masks;
  const std::int64_t row = args.out_row();
  const std::int32_t starts[] = {0, 1};
  args.tree = {}, args.query_start_loc = starts;
  for (int token = 0; token < tokens; ++token) {
    const std::vector<std::int32_t> blocks = path_blocks(table, tree_begin, masks[token]);
    const auto length = static_cast<std::int32_t>(blocks.size());
    args.block_tables = blocks.data(), args.max_blocks_per_seq = length, args.context_lens = &length;
    args.q = q + token * args.q_stride, args.out = out + token * row;
    cpu::paged_attention(threads, workspace, args);
  }
}

}  // namespace

TEST_CASE("attention of trees agrees with the reference for every format, block size and group") {
  // A tree alone, one over two partitions, its last level, a chain beside it, one token, and all that a mask holds.
  const std::vector<NewTokens> calls{{0, 5, 5}, {1, 520, 12}, {2, 90, 3}, {3, 70, 4}, {4, 33, 1}, {5, 200, 64}};
  const std::vector<int> trees{5, 12, 9, 0, 0, 64};
  std::size_t point = 0;
  for (const Dtype dtype : kTreeDtypes)
    for (const auto& [heads, kv_heads, head_dim] : {std::tuple{4, 4, 32}, {8, 2, 64}, {6, 1, 24}, {4, 2, 128}}) {
      PagedSequences sequences({heads, kv_heads, head_dim, dtype}, {5, 520, 90, 70, 33, 200});
      for (const int block_size : {1, 16, 64}) {
        if (thinned_out(point++, 7)) continue;
        INFO(name(dtype) << " heads " << heads << " kv_heads " << kv_heads << " block_size " << block_size);
        sequences.page(block_size);
        check_trees(sequences, calls, CalledTrees(calls, trees, static_cast<unsigned>(point)));
      }
    }
}

TEST_CASE("trees with ALiBi, windows and a soft cap agree with the reference") {
  const std::vector<NewTokens> calls{{0, 20, 20}, {1, 530, 20}, {2, 140, 5}, {3, 300, 40}};
  const std::vector<int> trees{20, 30, 12, 64};
  for (const int window : {0, 1, 3, 17, 64, 100, 515}) {
    if (kSanitized && window != 3 && window != 100) continue;
    for (const Alibi alibi : {Alibi::off, Alibi::on})
      for (const float cap : {0.0F, 2.0F}) {
        INFO("window " << window << (alibi == Alibi::on ? " with ALiBi" : "") << " cap " << cap);
        const PagedSequences sequences({4, 2, 16, Dtype::f32, window, alibi, 64, cap}, {20, 530, 140, 300});
        check_trees(sequences, calls, CalledTrees(calls, trees, static_cast<unsigned>(window)));
      }
  }
}

TEST_CASE("a token of a tree has the bits that it has when its path is decoded alone") {
  cpu::ThreadPool threads(2);
  for (const AttentionShape& shape : {AttentionShape{8, 2, 64, Dtype::f16},
                                      {4, 4, 80, Dtype::bf16},
                                      {6, 1, 16, Dtype::f32},
                                      {16, 1, 32, Dtype::f32},
                                      {6, 6, 32, Dtype::f16, 0, Alibi::on},
                                      {4, 2, 32, Dtype::f16, 100},
                                      {4, 4, 32, Dtype::f16, 5},
                                      {4, 1, 32, Dtype::bf16, 510, Alibi::on, 64, 3.0F},
                                      {2, 2, 40, Dtype::fp8_e5m2},
                                      {4, 1, 32, Dtype::fp8_e4m3},
                                      {4, 1, 32, Dtype::int8, 100, Alibi::on}})
    for (const auto& [context, tokens, tree] : {std::tuple{7, 7, 7}, {200, 20, 33}, {530, 16, 32}, {1100, 64, 64}}) {
      if (kSanitized && context == 1100) continue;
      PagedSequences sequences(shape, {context});
      const std::vector<NewTokens> calls{{0, context, tokens}};
      const CalledTrees trees(calls, {tree}, static_cast<unsigned>(context));
      for_each_vector_target([&](std::string_view target) {
        INFO(target << " " << name(shape.dtype) << " head_dim " << shape.head_dim << " context " << context);
        sequences.page(1);
        const std::vector<float> alone =
            run(sequences, calls, trees, [&](const PagedAttentionArgs& args) { decode_paths(args, threads); });
        for (const int block_size : {1, 16, 64}) {
          sequences.page(block_size);
          cpu::Workspace workspace;
          CHECK(run(sequences, calls, trees,
                    [&](const PagedAttentionArgs& args) { cpu::paged_attention(threads, workspace, args); }) == alone);
        }
      });
    }
}

TEST_CASE("a chain of new tokens has the bits of its tokens decoded one by one, also written as a tree") {
  cpu::ThreadPool threads(2);
  PagedSequences sequences({8, 2, 64, Dtype::f16}, {600});
  const std::vector<NewTokens> calls{{0, 600, 9}};
  CalledTrees trees(calls, {9}, 1);
  for (std::size_t token = 0; token < 9; ++token) trees.masks[token] = (std::uint64_t{2} << token) - 1;
  for_each_vector_target([&](std::string_view target) {
    INFO(target);
    std::vector<float> alone;
    for (int context = 592; context <= 600; ++context) {
      const std::vector<float> one = sequences.on_cpu({{0, context, 1}}, threads);
      alone.insert(alone.end(), one.begin(), one.end());
    }
    cpu::Workspace workspace;
    CHECK(sequences.on_cpu(calls, threads) == alone);
    CHECK(run(sequences, calls, trees,
              [&](const PagedAttentionArgs& args) { cpu::paged_attention(threads, workspace, args); }) == alone);
  });
}

TEST_CASE("trees are refused where K and V of several tokens are stored together") {
  const PagedSequences sequences({4, 2, 32, Dtype::kivi4}, {40});
  const std::vector<NewTokens> calls{{0, 40, 3}};
  CHECK_THROWS_AS(run(sequences, calls, CalledTrees(calls, {3}, 1),
                      [](const PagedAttentionArgs& args) {
                        cpu::ThreadPool threads(1);
                        cpu::Workspace workspace;
                        cpu::paged_attention(threads, workspace, args);
                      }),
                  std::invalid_argument);
}

}  // namespace dculab::kernels

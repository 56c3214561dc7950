// Critical blocks on the CPU: are bounds bounds, are the same blocks chosen, is attention that of the chosen tokens?
#include "kernels/cpu/kv/kv_kernels.hpp"

#include "tests/kernels/kv/choice_case.hpp"
#include "tests/kernels/paged_sequences.hpp"

namespace dculab::kernels {
namespace {

constexpr AttentionShape kBoundedShapes[] = {{8, 2, 64, Dtype::f16},      {4, 4, 80, Dtype::bf16},
                                             {6, 1, 16, Dtype::f32},      {4, 2, 80, Dtype::fp8_e4m3},
                                             {4, 2, 32, Dtype::fp8_e5m2}, {14, 2, 24, Dtype::int8}};

std::vector<BlockBounds> no_bounds(const PagedAttentionArgs& args) {
  return std::vector<BlockBounds>(static_cast<std::size_t>(args.cache.num_blocks) * args.cache.num_kv_heads * 2 *
                                      static_cast<std::size_t>(args.cache.head_dim),
                                  0x7FC0);
}

UpdateBlockBoundsArgs update_args(const PagedAttentionArgs& args, std::vector<BlockBounds>& bounds) {
  if (bounds.empty()) bounds = no_bounds(args);
  return {.cache = args.cache,
          .bounds = bounds.data(),
          .block_tables = args.block_tables,
          .max_blocks_per_seq = args.max_blocks_per_seq,
          .query_start_loc = args.query_start_loc,
          .context_lens = args.context_lens,
          .num_seqs = args.num_seqs};
}

// The new tokens of sequences of these lengths.
std::vector<NewTokens> whole(const std::vector<int>& lengths) {
  std::vector<NewTokens> calls;
  for (const int length : lengths) calls.push_back({static_cast<int>(calls.size()), length, length});
  return calls;
}

std::vector<NewTokens> last_of(const std::vector<int>& lengths) {
  std::vector<NewTokens> calls;
  for (const int length : lengths) calls.push_back({static_cast<int>(calls.size()), length, 1});
  return calls;
}

std::vector<BlockBounds> expected_bounds(const PagedSequences& sequences, const std::vector<int>& lengths) {
  std::vector<BlockBounds> bounds;
  sequences.run(whole(lengths),
                [&](const PagedAttentionArgs& args) { reference::update_block_bounds(update_args(args, bounds)); });
  return bounds;
}

void update_on_cpu(const PagedSequences& sequences, const std::vector<NewTokens>& calls,
                   std::vector<BlockBounds>& bounds) {
  cpu::ThreadPool threads(2);
  sequences.run(calls,
                [&](const PagedAttentionArgs& args) { cpu::update_block_bounds(threads, update_args(args, bounds)); });
}

// A chosen and attended decode of the last token of each sequence.
struct Decoded {
  std::vector<float> out, expected;  // of the kernel, and of the reference over the blocks that the kernel chose
};

Decoded decode(const PagedSequences& sequences, const std::vector<int>& lengths,
               const std::vector<std::int32_t>& budgets, std::vector<BlockBounds>& bounds, int num_threads = 2) {
  cpu::ThreadPool threads(num_threads);
  cpu::Workspace workspace;
  Decoded decoded;
  decoded.out = sequences.run(last_of(lengths), [&](const PagedAttentionArgs& args) {
    const int width = args.num_heads * args.cache.head_dim;
    ChoiceMemory memory(args.num_seqs, args.cache.num_kv_heads, args.max_blocks_per_seq, args.max_blocks_per_seq,
                        width);
    cpu::choose_critical_blocks(threads, workspace,
                                {.q = args.q,
                                 .q_stride = args.q_stride,
                                 .cache = args.cache,
                                 .bounds = bounds.data(),
                                 .block_tables = args.block_tables,
                                 .max_blocks_per_seq = args.max_blocks_per_seq,
                                 .context_lens = args.context_lens,
                                 .budgets = budgets.data(),
                                 .num_seqs = args.num_seqs,
                                 .num_heads = args.num_heads,
                                 .upper_bounds = memory.upper_bounds.data(),
                                 .chosen = memory.view});
    cpu::critical_attention(threads, workspace, args, memory.view);
    decoded.expected.assign(static_cast<std::size_t>(args.num_seqs * width), NAN);
    PagedAttentionArgs truth = args;
    truth.out = decoded.expected.data();
    reference::critical_attention(truth, memory.view);
  });
  return decoded;
}

std::vector<float> widened_bounds(const std::vector<BlockBounds>& bounds) {
  std::vector<float> values;
  for (const BlockBounds bound : bounds) values.push_back(f32_from_bf16(bound));
  return values;
}

bool are_equal(const std::vector<BlockBounds>& a, const std::vector<BlockBounds>& b) {
  const std::vector<float> first = widened_bounds(a), second = widened_bounds(b);
  return std::equal(first.begin(), first.end(), second.begin(), second.end(),
                    [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

}  // namespace

TEST_CASE("BF16 is rounded to the side that is asked for") {
  for (const float value : {0.0F, 1.0F, -1.0F, 1.001F, -1.001F, 3.3e38F, -3.3e38F, 1e-41F, -1e-41F}) {
    INFO(value);
    CHECK(f32_from_bf16(bf16_at_most(value)) <= value);
    CHECK(f32_from_bf16(bf16_at_least(value)) >= value);
    const bool is_bf16 = f32_from_bf16(bf16_from_f32(value)) == value;
    CHECK((bf16_at_most(value) == bf16_at_least(value)) == is_bf16);
  }
}

TEST_CASE("block bounds are the reference's, however the tokens come") {
  const std::vector<int> lengths{1, 70, 300, 16};
  for (const AttentionShape& shape : kBoundedShapes) {
    PagedSequences sequences(shape, lengths);
    for (const int block_size : {1, 16, 256}) {
      sequences.page(block_size);
      const std::vector<BlockBounds> expected = expected_bounds(sequences, lengths);
      for_each_vector_target([&](std::string_view target) {
        INFO(target << " " << name(shape.dtype) << " block_size " << block_size);
        std::vector<BlockBounds> bounds;
        update_on_cpu(sequences, whole(lengths), bounds);
        CHECK(are_equal(bounds, expected));
        bounds.assign(bounds.size(), 0x7FC0);  // chunks of all sizes, decodes among them
        update_on_cpu(sequences, {{0, 1, 1}, {1, 13, 13}, {2, 100, 100}, {3, 16, 16}}, bounds);
        for (int token = 14; token <= 70; ++token) update_on_cpu(sequences, {{1, token, 1}}, bounds);
        for (int end = 105; end <= 300; end += 5) update_on_cpu(sequences, {{2, end, 5}}, bounds);
        CHECK(are_equal(bounds, expected));
      });
    }
  }
}

TEST_CASE("a block that is used anew forgets its old keys") {
  const AttentionShape shape{4, 2, 64, Dtype::f16};
  PagedSequences sequences(shape, {40});
  std::vector<BlockBounds> bounds;
  update_on_cpu(sequences, whole({40}), bounds);
  const std::vector<BlockBounds> expected = bounds;
  for (std::size_t i = 0; i < bounds.size(); ++i)  // minima and maxima of wider keys, by turns of head_dim
    if (bounds[i] != 0x7FC0) bounds[i] = bf16_from_f32(i / 64 % 2 == 0 ? -100.0F : 100.0F);
  update_on_cpu(sequences, whole({40}), bounds);
  CHECK(are_equal(bounds, expected));
}

// Summed in the same order: each term of the bound is no less than the key's, and rounding keeps the order.
TEST_CASE("no key of a block has a product above the block's bound") {
  for (const AttentionShape& shape : kBoundedShapes) {
    PagedSequences sequences(shape, {90, 33});
    for (const int block_size : {1, 16, 256}) {
      sequences.page(block_size);
      std::vector<BlockBounds> bounds;
      update_on_cpu(sequences, whole({90, 33}), bounds);
      const std::vector<float> values = widened_bounds(bounds);
      int above = 0, products = 0;
      double slack = 0;
      sequences.run(last_of({90, 33}), [&](const PagedAttentionArgs& args) {
        const KvCacheView& cache = args.cache;
        for (int seq = 0; seq < args.num_seqs; ++seq)
          for (int token = 0; token < args.context_lens[seq]; ++token)
            for (int head = 0; head < args.num_heads; ++head) {
              const std::int32_t* table = args.block_tables + seq * args.max_blocks_per_seq;
              const std::int64_t slot = reference::slot_of(cache, table, token);
              const float* q = args.q + seq * args.q_stride + head * cache.head_dim;
              const auto [product, bound] = bounded(cache, q, slot, head * cache.num_kv_heads / args.num_heads, values);
              above += product <= bound ? 0 : 1, ++products;
              slack += bound - product;
            }
      });
      INFO(name(shape.dtype) << " block_size " << block_size);
      CHECK(above == 0);
      CHECK(products == (90 + 33) * shape.num_heads);
      // A block of one token is bounded by its own product, to the rounding of BF16: 2^-7 of |q k|, whose mean is 2/pi.
      if (block_size == 1) CHECK(slack / products <= 0x1p-7 * shape.head_dim);
    }
  }
}

TEST_CASE("the reference's blocks are chosen, and its bounds found") {
  for (const ChoiceShape& shape : choice_shapes()) {
    const ChoiceCase choice(shape);
    const ChoiceMemory expected = choice.expected();
    for_each_vector_target([&](std::string_view target) {
      for (const int num_threads : {1, 3}) {
        INFO(target << " head_dim " << shape.head_dim << " block_size " << shape.block_size);
        cpu::ThreadPool threads(num_threads);
        cpu::Workspace workspace;
        ChoiceMemory memory = choice.memory();
        cpu::choose_critical_blocks(threads, workspace, choice.args(memory));
        CHECK(memory.upper_bounds == expected.upper_bounds);
        CHECK(memory.places == expected.places);
        CHECK(memory.block_tables == expected.block_tables);
        CHECK(memory.context_lens == expected.context_lens);
        CHECK(memory.query_start_loc == expected.query_start_loc);
        CHECK(memory.queries == expected.queries);
      }
    });
  }
}

TEST_CASE("a choice holds the first and the recent blocks and, of equal ones, those that come first") {
  ChoiceShape shape{.num_kv_heads = 1, .group_size = 1, .head_dim = 8, .block_size = 16, .contexts = {150}};
  shape.budgets = {5}, shape.recent_blocks = 2;
  const ChoiceCase choice(shape);
  ChoiceMemory memory = choice.memory();
  ChooseCriticalBlocksArgs args = choice.args(memory);
  const std::vector<BlockBounds> same(choice.bounds().size(), bf16_from_f32(1.0F));
  args.bounds = same.data();
  cpu::ThreadPool threads(1);
  cpu::Workspace workspace;
  cpu::choose_critical_blocks(threads, workspace, args);
  CHECK(std::vector(memory.places.begin(), memory.places.begin() + 6) == std::vector<std::int32_t>{0, 1, 2, 8, 9, -1});
  CHECK(memory.context_lens[0] == 4 * 16 + 150 % 16);
}

TEST_CASE("attention over all blocks has the bits of paged attention") {
  const std::vector<int> lengths{1, 70, 1030, 16};
  for (const AttentionShape& shape : kBoundedShapes) {
    PagedSequences sequences(shape, lengths);
    for (const int block_size : {1, 16, 256}) {
      sequences.page(block_size);
      for_each_vector_target([&](std::string_view target) {
        INFO(target << " " << name(shape.dtype) << " block_size " << block_size);
        std::vector<BlockBounds> bounds;
        update_on_cpu(sequences, whole(lengths), bounds);
        const Decoded decoded = decode(sequences, lengths, {1, 70, 1030, 16}, bounds);
        CHECK(decoded.out == sequences.on_cpu(last_of(lengths)));
      });
    }
  }
}

TEST_CASE("attention over chosen blocks agrees with the reference, with the same bits for any threads and batch") {
  const std::vector<int> lengths{1, 700, 1030, 33};
  for (AttentionShape shape : kBoundedShapes) {
    shape.soft_cap = shape.head_dim == 80 ? 2.0F : 0.0F;
    PagedSequences sequences(shape, lengths);
    for (const int block_size : {1, 16, 256}) {
      sequences.page(block_size);
      for_each_vector_target([&](std::string_view target) {
        INFO(target << " " << name(shape.dtype) << " block_size " << block_size);
        std::vector<BlockBounds> bounds;
        update_on_cpu(sequences, whole(lengths), bounds);
        const std::vector<std::int32_t> budgets{1, 150 / block_size, 600 / block_size, 3};
        const Decoded decoded = decode(sequences, lengths, budgets, bounds);
        CHECK(largest_difference(decoded.out, decoded.expected) <= 2e-6 * 4);  // as of paged attention
        CHECK(decode(sequences, lengths, budgets, bounds, 3).out == decoded.out);
        const auto width = static_cast<std::ptrdiff_t>(shape.num_heads * shape.head_dim);
        const Decoded alone = decode(sequences, {1, 700}, {1, 150 / block_size}, bounds, 1);
        CHECK(std::equal(alone.out.begin(), alone.out.begin() + 2 * width, decoded.out.begin()));
      });
    }
  }
}

TEST_CASE("critical blocks refuse what they do not serve") {
  cpu::ThreadPool threads(1);
  cpu::Workspace workspace;
  PagedAttentionArgs args;
  args.num_heads = 2, args.cache = {.num_kv_heads = 1, .head_dim = 8}, args.q_stride = 16;
  const auto refused = [&] { cpu::critical_attention(threads, workspace, args, {}); };
  args.cache.dtype = Dtype::kivi4;
  CHECK_THROWS_WITH(refused(), ContainsSubstring("kivi4"));
  CHECK_THROWS_WITH(cpu::update_block_bounds(threads, {.cache = args.cache}), ContainsSubstring("kivi4"));
  args.cache.dtype = Dtype::f16, args.sliding_window = 5;
  CHECK_THROWS_WITH(refused(), ContainsSubstring("sliding window"));
  const float slope = 1;
  args.sliding_window = 0, args.alibi_slopes = &slope;
  CHECK_THROWS_WITH(refused(), ContainsSubstring("ALiBi"));
  args.alibi_slopes = nullptr, args.q_stride = 24;
  CHECK_THROWS_WITH(refused(), ContainsSubstring("need a copy"));
  args.q_stride = 16, args.out_stride = 20;
  CHECK_THROWS_WITH(refused(), ContainsSubstring("results must lie side by side"));
  CHECK_THROWS_WITH(cpu::choose_critical_blocks(threads, workspace, {.cache = {.head_dim = 12}}),
                    ContainsSubstring("multiple of 8"));
  CHECK_THROWS_WITH(cpu::choose_critical_blocks(threads, workspace, {.cache = args.cache, .recent_blocks = 0}),
                    ContainsSubstring("always chosen"));
}

}  // namespace dculab::kernels

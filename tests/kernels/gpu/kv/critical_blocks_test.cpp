// Critical blocks on the GPU: the reference's bounds, the same blocks, and attention to their tokens.
#include "kernels/gpu/kv/critical_blocks.hpp"

#include "core/error.hpp"
#include "tests/kernels/gpu/cached_attention.hpp"
#include "tests/kernels/kv/choice_case.hpp"

namespace dculab::kernels::gpu {
namespace {

struct DeviceCall : CallOnDevice {
  DeviceCall(Device& device, const PagedAttentionArgs& args)
      : CallOnDevice(device, args,
                     std::vector<float>(args.q, args.q + args.query_start_loc[args.num_seqs] * args.q_stride)),
        cache(device, args.cache) {}

  CacheOnDevice cache;
};

std::size_t num_bounds(const KvCacheView& cache) {
  return static_cast<std::size_t>(cache.num_blocks) * cache.num_kv_heads * 2 * cache.head_dim;
}

void update(Device& device, const PagedAttentionArgs& args, const DeviceCall& call, const DeviceTensor& bounds) {
  device.update_block_bounds({.cache = call.cache.view,
                              .bounds = bounds.as<BlockBounds>(),
                              .block_tables = call.tables.as<std::int32_t>(),
                              .max_blocks_per_seq = args.max_blocks_per_seq,
                              .query_start_loc = call.longest_query > 1 ? call.starts.as<std::int32_t>() : nullptr,
                              .context_lens = call.contexts.as<std::int32_t>(),
                              .num_seqs = args.num_seqs,
                              .max_tokens_per_seq = call.longest_query});
}

void update_on_host(const PagedAttentionArgs& args, std::vector<BlockBounds>& bounds) {
  reference::update_block_bounds({.cache = args.cache,
                                  .bounds = bounds.data(),
                                  .block_tables = args.block_tables,
                                  .max_blocks_per_seq = args.max_blocks_per_seq,
                                  .query_start_loc = args.query_start_loc,
                                  .context_lens = args.context_lens,
                                  .num_seqs = args.num_seqs});
}

// Lists of a choice on a device.
struct DeviceChoice {
  DeviceChoice(Device& device, const ChoiceMemory& memory, std::size_t query_bytes)
      : places(device, memory.places),
        block_tables(device, memory.block_tables),
        context_lens(device, memory.context_lens),
        queries(device, query_bytes),
        upper_bounds(device, memory.upper_bounds),
        view{.stride = memory.view.stride,
             .places = places.as<std::int32_t>(),
             .block_tables = block_tables.as<std::int32_t>(),
             .context_lens = context_lens.as<std::int32_t>(),
             .query_start_loc = nullptr,
             .queries = queries.as()} {}

  DeviceTensor places, block_tables, context_lens, queries, upper_bounds;
  ChosenBlocks view;
};

// Decodes with the blocks that the device chooses; `memory` becomes their lists, on the host.
std::vector<float> decode(Device& device, const PagedAttentionArgs& args, const DeviceCall& call,
                          const DeviceTensor& bounds, const std::vector<std::int32_t>& budgets, int partition_tokens,
                          ChoiceMemory& memory) {
  const int kv_heads = args.cache.num_kv_heads, group_size = args.num_heads / kv_heads, head_dim = args.cache.head_dim;
  const int width = args.num_heads * head_dim;
  const int longest = call.longest_context;
  DeviceChoice choice(device, memory, sizeof(float) * memory.queries.size());
  const DeviceTensor budget(device, budgets);
  device.choose_critical_blocks({.q = {call.q.as(), Dtype::f32},
                                 .q_stride = args.q_stride,
                                 .cache = call.cache.view,
                                 .bounds = bounds.as<BlockBounds>(),
                                 .block_tables = call.tables.as<std::int32_t>(),
                                 .max_blocks_per_seq = args.max_blocks_per_seq,
                                 .context_lens = call.contexts.as<std::int32_t>(),
                                 .max_context_len = longest,
                                 .budgets = budget.as<std::int32_t>(),
                                 .num_seqs = args.num_seqs,
                                 .num_heads = args.num_heads,
                                 .upper_bounds = choice.upper_bounds.as<float>(),
                                 .chosen = choice.view});
  const DeviceTensor out(device, sizeof(float) * static_cast<std::size_t>(args.num_seqs * width));
  const DeviceTensor workspace(
      device, sizeof(float) * static_cast<std::size_t>(paged_attention_workspace(args.num_seqs * kv_heads, group_size,
                                                                                 head_dim, longest, partition_tokens)));
  device.paged_attention(over_chosen_blocks({.q = {call.q.as(), Dtype::f32},
                                             .q_stride = args.q_stride,
                                             .cache = call.cache.view,
                                             .block_tables = call.tables.as<std::int32_t>(),
                                             .max_blocks_per_seq = args.max_blocks_per_seq,
                                             .context_lens = call.contexts.as<std::int32_t>(),
                                             .max_context_len = longest,
                                             .out = {out.as(), Dtype::f32},
                                             .num_seqs = args.num_seqs,
                                             .num_heads = args.num_heads,
                                             .scale = args.scale,
                                             .score_cap = ScoreCap(args.logit_soft_cap),
                                             .partition_tokens = partition_tokens,
                                             .workspace = workspace.as<float>()},
                                            choice.view, longest));
  memory.places = choice.places.read<std::int32_t>(), memory.view.places = memory.places.data();
  memory.context_lens = choice.context_lens.read<std::int32_t>();
  memory.view.context_lens = memory.context_lens.data();
  return out.read_numbers(Dtype::f32);
}

std::vector<float> widened(const std::vector<BlockBounds>& bounds) {
  std::vector<float> values;
  for (const BlockBounds bound : bounds) values.push_back(bound == 0xFFFF ? 12345.0F : f32_from_bf16(bound));
  return values;
}

}  // namespace

TEST_CASE("GPU block bounds are the reference's, however the tokens come", "[gpu]") {
  const auto& [shape, block_size] = GENERATE(table<AttentionShape, int>({{{8, 2, 64, Dtype::f16}, 16},
                                                                         {{5, 5, 80, Dtype::bf16}, 1},
                                                                         {{6, 3, 256, Dtype::fp8_e4m3}, 4},
                                                                         {{2, 1, 8, Dtype::fp8_e5m2}, 256},
                                                                         {{1, 1, 128, Dtype::f16}, 256}}));
  CAPTURE(name(shape.dtype), shape.head_dim, block_size);
  PagedSequences sequences(shape, {1, 21, 60});
  sequences.page(block_size);
  const std::vector<std::vector<NewTokens>> steps{
      {{0, 1, 1}, {1, 20, 20}, {2, 57, 57}}, {{1, 21, 1}, {2, 58, 1}}, {{2, 60, 2}}};
  for_each_device([&](Device& device) {
    std::vector<BlockBounds> expected;
    std::unique_ptr<DeviceTensor> bounds;
    for (const std::vector<NewTokens>& step : steps)
      sequences.run(step, [&](const PagedAttentionArgs& args) {
        expected.resize(num_bounds(args.cache), 0xFFFF);
        if (bounds == nullptr) bounds = std::make_unique<DeviceTensor>(device, expected);
        update_on_host(args, expected);
        update(device, args, DeviceCall(device, args), *bounds);
      });
    CHECK(widened(bounds->read<BlockBounds>()) == widened(expected));
  });
}

TEST_CASE("GPU kernels choose the blocks that the reference chooses", "[gpu]") {
  const auto q_dtype = GENERATE(Dtype::f32, Dtype::f16);
  for (const ChoiceShape& shape : choice_shapes()) {
    CAPTURE(name(q_dtype), shape.head_dim, shape.block_size, shape.group_size);
    const ChoiceCase choice(shape);
    const ChoiceMemory expected = choice.expected();
    std::vector<std::byte> q(bytes_of(q_dtype, choice.q().size()));
    for (std::size_t i = 0; i < choice.q().size(); ++i) reference::store_value(q.data(), q_dtype, i, choice.q()[i]);
    for_each_device([&](Device& device) {
      const DeviceTensor queries(device, q), bounds(device, choice.bounds()), tables(device, choice.tables());
      const DeviceTensor contexts(device, shape.contexts), budgets(device, shape.budgets);
      const DeviceChoice got(device, choice.memory(), bytes_of(q_dtype, expected.queries.size()));
      device.choose_critical_blocks({.q = {queries.as(), q_dtype},
                                     .q_stride = choice.q_stride(),
                                     .cache = choice.cache(),
                                     .bounds = bounds.as<BlockBounds>(),
                                     .block_tables = tables.as<std::int32_t>(),
                                     .max_blocks_per_seq = choice.longest(),
                                     .context_lens = contexts.as<std::int32_t>(),
                                     .max_context_len = *std::max_element(shape.contexts.begin(), shape.contexts.end()),
                                     .budgets = budgets.as<std::int32_t>(),
                                     .num_seqs = choice.num_seqs(),
                                     .num_heads = shape.num_kv_heads * shape.group_size,
                                     .recent_blocks = shape.recent_blocks,
                                     .upper_bounds = got.upper_bounds.as<float>(),
                                     .chosen = got.view});
      CHECK(got.upper_bounds.read<float>() == expected.upper_bounds);
      CHECK(got.places.read<std::int32_t>() == expected.places);
      CHECK(got.block_tables.read<std::int32_t>() == expected.block_tables);
      CHECK(got.context_lens.read<std::int32_t>() == expected.context_lens);
      CHECK(got.queries.read_numbers(q_dtype) == expected.queries);
    });
  }
}

TEST_CASE("GPU attention over chosen blocks agrees with the reference", "[gpu]") {
  const auto& [shape, block_size] = GENERATE(table<AttentionShape, int>({{{8, 2, 64, Dtype::f16}, 16},
                                                                         {{6, 2, 80, Dtype::bf16}, 1},
                                                                         {{4, 4, 32, Dtype::fp8_e4m3}, 4},
                                                                         {{16, 2, 128, Dtype::f16}, 64}}));
  const int partition_tokens = GENERATE(0, 40);
  const bool has_all = GENERATE(false, true);
  CAPTURE(name(shape.dtype), shape.head_dim, block_size, partition_tokens, has_all);
  const std::vector<int> lengths{1, 70, 203};
  PagedSequences sequences(shape, lengths);
  sequences.page(block_size);
  const std::vector<std::int32_t> budgets = has_all ? std::vector<std::int32_t>{203, 203, 203}
                                                    : std::vector<std::int32_t>{1, 30 / block_size, 70 / block_size};
  // As DecodeCase::tolerance: of queries rounded to halves unless the cache is BF16, with |V| below 5.
  const double score_error = (shape.dtype == Dtype::bf16 ? 0 : 4 * 0x1p-11 / std::sqrt(3.0)) + 0x1p-18;
  for_each_device([&](Device& device) {
    std::unique_ptr<DeviceTensor> bounds;
    sequences.run({{0, 1, 1}, {1, 70, 70}, {2, 203, 203}}, [&](const PagedAttentionArgs& args) {
      bounds = std::make_unique<DeviceTensor>(device, std::vector<BlockBounds>(num_bounds(args.cache), 0xFFFF));
      update(device, args, DeviceCall(device, args), *bounds);
    });
    sequences.run({{0, 1, 1}, {1, 70, 1}, {2, 203, 1}}, [&](const PagedAttentionArgs& args) {
      const int width = args.num_heads * args.cache.head_dim;
      ChoiceMemory memory(args.num_seqs, args.cache.num_kv_heads, args.max_blocks_per_seq, args.max_blocks_per_seq,
                          width);
      const std::vector<float> out =
          decode(device, args, DeviceCall(device, args), *bounds, budgets, partition_tokens, memory);
      reference::critical_attention(args, memory.view);
      const std::vector<float> expected(args.out, args.out + out.size());
      CHECK(largest_difference(out, expected) <= 2 * score_error * 5 + 0x1p-20);
      const int longest = args.context_lens[2];
      CHECK((memory.context_lens.back() == longest) == has_all);
    });
  });
}

TEST_CASE("GPU critical blocks refuse what there is no kernel for", "[gpu]") {
  PagedAttention attention;
  attention.num_heads = 2, attention.cache = {.num_kv_heads = 1, .head_dim = 32}, attention.q_stride = 96;
  CHECK_THROWS_WITH(over_chosen_blocks(attention, {}, 1), ContainsSubstring("need a copy"));
  attention.q_stride = 64, attention.sliding_window = 4;
  CHECK_THROWS_WITH(over_chosen_blocks(attention, {}, 1), ContainsSubstring("sliding window"));
  const float slope = 1;
  attention.sliding_window = 0, attention.alibi_slopes = &slope;
  CHECK_THROWS_WITH(over_chosen_blocks(attention, {}, 1), ContainsSubstring("ALiBi"));
  const std::int32_t starts[] = {0, 2};
  attention.alibi_slopes = nullptr, attention.queries.start_loc = starts;
  CHECK_THROWS_WITH(over_chosen_blocks(attention, {}, 1), ContainsSubstring("several new tokens"));
  for_each_device([&](Device& device) {
    const auto update_of = [&](Dtype dtype, int head_dim) {
      device.update_block_bounds(
          {.cache = {.dtype = dtype, .num_kv_heads = 1, .block_size = 16, .head_dim = head_dim}});
    };
    CHECK_THROWS_WITH(update_of(Dtype::int8, 64), ContainsSubstring("int8") && ContainsSubstring("fp8_e5m2"));
    CHECK_THROWS_WITH(update_of(Dtype::f16, 20), ContainsSubstring("head_dim 20"));
    CHECK_THROWS_WITH(update_of(Dtype::f16, 264), ContainsSubstring("up to 256"));
    ChooseCriticalBlocks args{.cache = {.num_kv_heads = 1, .block_size = 16, .head_dim = 64}, .num_heads = 1};
    args.q.dtype = Dtype::bf16;
    CHECK_THROWS_WITH(device.choose_critical_blocks(args), ContainsSubstring("bf16"));
    args.q.dtype = Dtype::f16, args.recent_blocks = 0;
    CHECK_THROWS_WITH(device.choose_critical_blocks(args), ContainsSubstring("always chosen"));
    args.recent_blocks = 1, args.q_stride = 12;
    CHECK_THROWS_WITH(device.choose_critical_blocks(args), ContainsSubstring("12 values between queries"));
  });
}

}  // namespace dculab::kernels::gpu

// H2O on the GPU: the reference's sums of attention, the choice that follows from them, and slots of each KV head.
#include "kernels/gpu/kv/heavy_hitters.hpp"

#include <algorithm>
#include <tuple>

#include "kernels/number_format.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "lower/dculab_gpu/attention_scores_tiling.hpp"
#include "tests/kernels/gpu/cached_attention.hpp"

namespace dculab::kernels::gpu {
namespace {

constexpr int kLayers = 2, kScoredLayer = 1;  // what other layers have stays as it is

// What a step has on a device. Sums begin at 0.5, positions are 3 times the places, of all layers.
struct ScoredStep {
  ScoredStep(Device& device, const PagedAttentionArgs& args, const std::vector<float>& queries, int places)
      : call(device, args, queries), cache(device, args.cache), capacity(places) {
    cache.view.v = nullptr;
    const auto rows = static_cast<std::size_t>(kLayers * args.cache.num_kv_heads);
    std::vector<std::int32_t> positions(rows * static_cast<std::size_t>(capacity));
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = 3 * static_cast<int>(i % std::size_t(capacity));
    std::vector<HeavyHitterState> of_sequences;
    std::vector<std::int32_t> next;
    for (int seq = 0; seq < args.num_seqs; ++seq) {
      sums.push_back(std::make_unique<DeviceTensor>(device, std::vector<float>(positions.size(), 0.5F)));
      position.push_back(std::make_unique<DeviceTensor>(device, positions));
      slots.push_back(std::make_unique<DeviceTensor>(device, std::vector<std::int64_t>(rows, -7)));
      of_sequences.push_back(
          {sums.back()->as<float>(), position.back()->as<std::int32_t>(), slots.back()->as<std::int64_t>()});
      next.push_back(3 * args.context_lens[seq]);
    }
    states = std::make_unique<DeviceTensor>(device, of_sequences);
    next_positions = std::make_unique<DeviceTensor>(device, next);
  }

  void run(Device& device, const PagedAttentionArgs& args, int window) const {
    device.attention_scores({.q = {call.q.as(), Dtype::f32},
                             .q_stride = args.q_stride,
                             .cache = cache.view,
                             .block_tables = call.tables.as<std::int32_t>(),
                             .max_blocks_per_seq = args.max_blocks_per_seq,
                             .query_start_loc = call.starts.as<std::int32_t>(),
                             .context_lens = call.contexts.as<std::int32_t>(),
                             .max_context_len = call.longest_context,
                             .num_seqs = args.num_seqs,
                             .num_heads = args.num_heads,
                             .scale = args.scale,
                             .states = states->as<HeavyHitterState>(),
                             .next_positions = next_positions->as<std::int32_t>(),
                             .layer = kScoredLayer,
                             .capacity = capacity,
                             .window = window});
  }

  CallOnDevice call;
  CacheOnDevice cache;
  int capacity;
  std::vector<std::unique_ptr<DeviceTensor>> sums, position, slots;
  std::unique_ptr<DeviceTensor> states, next_positions;
};

// Queries that halves hold, as the kernel multiplies them.
std::vector<float> halves(const PagedAttentionArgs& args) {
  const auto tokens = static_cast<std::size_t>(args.query_start_loc[args.num_seqs]);
  std::vector<float> queries(args.q, args.q + tokens * static_cast<std::size_t>(args.q_stride));
  for (float& value : queries)
    if (!std::isnan(value)) value = f32_from_f16(f16_from_f32(value));
  return queries;
}

// Of the layer: [num_kv_heads, capacity].
std::vector<float> reference_sums(const PagedAttentionArgs& args, const std::vector<float>& queries, int seq,
                                  int capacity) {
  std::vector<std::vector<float>> sums(
      static_cast<std::size_t>(args.num_seqs),
      std::vector<float>(static_cast<std::size_t>(args.cache.num_kv_heads * capacity), 0.5F));
  std::vector<float*> pointers;
  for (std::vector<float>& each : sums) pointers.push_back(each.data());
  AttentionScoresArgs scores;
  scores.attention = args, scores.attention.q = queries.data();
  scores.sums = pointers.data(), scores.sums_stride = capacity;
  reference::attention_scores(scores);
  return sums[static_cast<std::size_t>(seq)];
}

std::vector<float> of_layer(const DeviceTensor& all, int layer, std::size_t values) {
  const auto every = all.read<float>();
  const auto first = every.begin() + static_cast<std::ptrdiff_t>(values) * layer;
  return {first, first + static_cast<std::ptrdiff_t>(values)};
}

void check_sums(Device& device, const PagedAttentionArgs& args, double tolerance) {
  const int capacity = 1 + *std::max_element(args.context_lens, args.context_lens + args.num_seqs);
  const std::vector<float> queries = halves(args);
  const ScoredStep step(device, args, queries, capacity);
  step.run(device, args, 1);
  const auto values = static_cast<std::size_t>(args.cache.num_kv_heads * capacity);
  for (int seq = 0; seq < args.num_seqs; ++seq) {
    const DeviceTensor& sums = *step.sums[static_cast<std::size_t>(seq)];
    CHECK(largest_difference(of_layer(sums, kScoredLayer, values), reference_sums(args, queries, seq, capacity)) <=
          tolerance);
    CHECK(of_layer(sums, 0, values) == std::vector<float>(values, 0.5F));
    // Nothing is full.
    const auto slots = step.slots[static_cast<std::size_t>(seq)]->read<std::int64_t>();
    CHECK(std::ranges::count(slots, -7) == std::ssize(slots));
  }
}

// Which place goes, by the rule.
int place_that_goes(const std::vector<float>& sums, int head, int capacity, int window, int next_position) {
  int chosen = -1;
  const float* of_head = sums.data() + head * capacity;
  for (int place = 0; place < capacity; ++place)
    if (3 * place <= next_position - window && (chosen < 0 || of_head[place] < of_head[chosen])) chosen = place;
  return std::max(chosen, 0);
}

void check_choice(Device& device, const PagedAttentionArgs& args, int window) {
  const int capacity = args.context_lens[0], block_size = args.cache.block_size;
  const std::vector<float> queries = halves(args);
  const ScoredStep full(device, args, queries, capacity), roomy(device, args, queries, capacity + 1);
  full.run(device, args, window);
  roomy.run(device, args, window);
  const int heads = args.cache.num_kv_heads;
  const auto values = static_cast<std::size_t>(heads * capacity);
  auto sums = of_layer(*full.sums[0], kScoredLayer, values);
  const auto before = of_layer(*roomy.sums[0], kScoredLayer, values + static_cast<std::size_t>(heads));
  const auto positions = full.position[0]->read<std::int32_t>();
  const auto slots = full.slots[0]->read<std::int64_t>();
  for (int head = 0; head < heads; ++head) {
    std::vector<float> own(before.begin() + head * (capacity + 1), before.begin() + head * (capacity + 1) + capacity);
    const int place = place_that_goes(own, 0, capacity, window, 3 * capacity);
    own[static_cast<std::size_t>(place)] = 0;
    CHECK(std::equal(own.begin(), own.end(), sums.begin() + head * capacity));
    const int row = kScoredLayer * heads + head;
    CHECK(positions[static_cast<std::size_t>(row * capacity + place)] == 3 * capacity);
    CHECK(slots[static_cast<std::size_t>(row)] ==
          std::int64_t{args.block_tables[place / block_size]} * block_size + place % block_size);
    CHECK(slots[static_cast<std::size_t>(head)] == -7);  // of the other layer
  }
  CHECK(std::ranges::count(positions, 3 * capacity) == heads);
}

constexpr AttentionShape kScoredShapes[] = {
    {8, 2, 64, Dtype::f16},      {4, 4, 80, Dtype::bf16},  {7, 1, 128, Dtype::f16}, {6, 2, 80, Dtype::fp8_e4m3},
    {4, 2, 32, Dtype::fp8_e5m2}, {5, 1, 256, Dtype::bf16}, {3, 3, 8, Dtype::f16},   {6, 2, 48, Dtype::int8}};

}  // namespace

TEST_CASE("GPU attention scores agree with the reference", "[gpu]") {
  std::size_t turn = 0;
  for (const AttentionShape& shape : kScoredShapes) {
    if (thinned_out(turn++, 3)) continue;
    PagedSequences sequences(shape, {1, 70, 530});
    for (const int block_size : {1, 16, 256}) {
      INFO(name(shape.dtype) << " head_dim " << shape.head_dim << " block_size " << block_size);
      sequences.page(block_size);
      // Up to 70 tokens of a group add weights of at most 1, each with the relative error of a score of size about 4
      // and of exp.
      sequences.run({{0, 1, 1}, {1, 70, block_size == 16 ? 70 : 2}, {2, 530, 3}}, [&](const PagedAttentionArgs& args) {
        for_each_device([&](Device& device) { check_sums(device, args, 2e-6 * 70); });
      });
    }
  }
}

TEST_CASE("GPU attention scores of contexts beyond shared memory, head by head and chunk by chunk", "[gpu][once]") {
  for (const auto& [heads, context] : {std::pair{4, 3000}, {2, lower::dculab_gpu::kHeldScores + 300}}) {
    const PagedSequences sequences({heads, 1, 8, Dtype::f16}, {context});
    sequences.run({{0, context, 2}}, [&](const PagedAttentionArgs& args) {
      for_each_device([&](Device& device) { check_sums(device, args, 2e-6 * 4); });
    });
  }
}

TEST_CASE("the GPU chooses the least of what is not recent, for each KV head", "[gpu]") {
  for (const AttentionShape& shape : kScoredShapes) {
    PagedSequences sequences(shape, {300});
    for (const auto& [context, block_size, window] :
         {std::tuple{300, 16, 90}, {65, 1, 1}, {40, 32, 3 * 40}, {1, 4, 1}}) {
      INFO(name(shape.dtype) << " head_dim " << shape.head_dim << " context " << context);
      sequences.page(block_size);
      sequences.run({{0, context, 1}}, [&, window = window](const PagedAttentionArgs& args) {
        for_each_device([&](Device& device) { check_choice(device, args, window); });
      });
    }
  }
}

TEST_CASE("GPU K and V go to a slot of each head where they have one", "[gpu]") {
  const auto dtype = GENERATE(Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3);
  const auto& [heads, head_dim, block_size] = GENERATE(table<int, int, int>({{1, 8, 1}, {5, 80, 16}, {3, 32, 7}}));
  CAPTURE(name(dtype), heads, head_dim, block_size);
  constexpr int kTokens = 3;
  TensorSource source(5);
  const int width = heads * head_dim, stride = 2 * width;
  auto kv = source.floats(static_cast<std::size_t>(kTokens * stride));
  const std::vector<std::int64_t> slot_mapping{9, 1, -1};
  // The second token takes places of its own, in the layer after the first.
  std::vector<std::int64_t> own(static_cast<std::size_t>(2 * heads), 0), head_slots;
  for (int head = 0; head < heads; ++head) own[static_cast<std::size_t>(heads + head)] = 10 + 2 * head;
  for (int token = 0; token < kTokens; ++token)
    for (int head = 0; head < heads; ++head)
      head_slots.push_back(token == 1 ? 10 + 2 * head : slot_mapping[static_cast<std::size_t>(token)]);
  CacheMemory expected(dtype, 2 + 32 / block_size, heads, block_size, head_dim);
  reference::rope_and_cache({.qkv = kv.data(),
                             .cache = expected.view,
                             .num_tokens = kTokens,
                             .num_heads = 0,
                             .head_slots = head_slots.data()});
  for_each_device([&](Device& device) {
    const DeviceTensor k(device, expected.k.size() * 2), v(device, expected.k.size() * 2);
    const DeviceTensor values(device, kv), slots(device, slot_mapping), places(device, own);
    const DeviceTensor of_tokens(device, std::vector<const std::int64_t*>{nullptr, places.as<std::int64_t>(), nullptr});
    KvCacheView view = expected.view;
    view.k = k.as(), view.v = v.as();
    device.reshape_and_cache({.k = {values.as(), Dtype::f32},
                              .v = {values.as<float>() + width, Dtype::f32},
                              .kv_stride = stride,
                              .slot_mapping = slots.as<std::int64_t>(),
                              .cache = view,
                              .num_tokens = kTokens,
                              .head_slots = {of_tokens.as<const std::int64_t*>(), heads}});
    CHECK(k.read<std::uint16_t>() == expected.k);
    CHECK(v.read<std::uint16_t>() == expected.v);
  });
}

TEST_CASE("GPU attention scores refuse what no kernel is compiled for", "[gpu]") {
  for_each_device([&](Device& device) {
    const DeviceTensor memory(device, 64);
    AttentionScores args{.q = {memory.as(), Dtype::f32}, .q_stride = 64, .num_seqs = 1, .num_heads = 4};
    args.cache = {.k = memory.as(), .dtype = Dtype::fp8_e4m3, .num_kv_heads = 2, .block_size = 16, .head_dim = 24};
    CHECK_THROWS_WITH(device.attention_scores(args), ContainsSubstring("24") && ContainsSubstring("multiple of 16"));
    args.cache.dtype = Dtype::f16, args.cache.head_dim = 512;
    CHECK_THROWS_WITH(device.attention_scores(args), ContainsSubstring("head_dim 512"));
    args.cache.head_dim = 64, args.num_heads = 3;
    CHECK_THROWS_WITH(device.attention_scores(args), ContainsSubstring("3 query heads"));
    args.num_heads = 4, args.q.dtype = Dtype::bf16;
    CHECK_THROWS_WITH(device.attention_scores(args), ContainsSubstring("bf16"));
    args.q.dtype = Dtype::f16, args.cache.dtype = Dtype::kivi4;
    CHECK_THROWS_WITH(device.attention_scores(args), ContainsSubstring("kivi4"));
  });
}

}  // namespace dculab::kernels::gpu

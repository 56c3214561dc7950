// What does decode attention take when it loads only critical blocks, bounds and choice included? An 8B model's layer:
// 32 query heads over 8 KV heads of 128, F16.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu/kv/kv_kernels.hpp"
#include "kernels/number_format.hpp"
#include "tests/bench/report.hpp"

namespace dculab::kernels {
namespace {

using benchmark::State;

constexpr int kHeads = 32, kKvHeads = 8, kHeadDim = 128;

// Arguments: threads, batch, context, block_size, percent of the blocks that are loaded. Layers in turn as an engine
// has them, so that a decode finds nothing in a cache; `batch` sequences over shuffled blocks.
struct CriticalCase {
  int batch, context, block_size, blocks_per_seq, layers;
  std::size_t layer_values;                      // of K (or V)
  std::vector<std::uint16_t> k, v;               // [layers, blocks, kv_heads, block_size, head_dim]
  std::vector<std::vector<BlockBounds>> bounds;  // of each layer
  std::vector<float> q, out, upper_bounds;
  std::vector<std::int32_t> tables, starts, contexts, budgets;
  std::vector<std::int32_t> chosen_tables, chosen_contexts, chosen_starts;

  explicit CriticalCase(const State& state)
      : batch(static_cast<int>(state.range(1))),
        context(static_cast<int>(state.range(2))),
        block_size(static_cast<int>(state.range(3))),
        blocks_per_seq((context + block_size - 1) / block_size),
        layers(std::max(2, (1 << 28) / (batch * context * kKvHeads * kHeadDim * 4))),
        layer_values(static_cast<std::size_t>(batch * blocks_per_seq * block_size) * kKvHeads * kHeadDim),
        k(layer_values * static_cast<std::size_t>(layers)),
        q(static_cast<std::size_t>(batch * kHeads * kHeadDim)),
        out(q.size()),
        upper_bounds(static_cast<std::size_t>(batch * kKvHeads * blocks_per_seq)),
        tables(static_cast<std::size_t>(batch * blocks_per_seq)),
        contexts(static_cast<std::size_t>(batch), context),
        budgets(static_cast<std::size_t>(batch), static_cast<int>(blocks_per_seq * state.range(4) / 100)),
        chosen_tables(upper_bounds.size()),
        chosen_contexts(static_cast<std::size_t>(batch * kKvHeads)),
        chosen_starts(chosen_contexts.size() + 1) {
    std::mt19937 random(2);
    std::uniform_real_distribution<float> number(-1.0F, 1.0F);
    for (float& value : q) value = number(random);
    std::vector<std::uint16_t> some(65521);
    for (std::uint16_t& value : some) value = f16_from_f32(number(random));
    for (std::size_t i = 0; i < k.size(); ++i) k[i] = some[i % some.size()];
    v = k;
    std::iota(tables.begin(), tables.end(), 0);
    std::shuffle(tables.begin(), tables.end(), random);
    for (int seq = 0; seq <= batch; ++seq) starts.push_back(seq);
    find_bounds();
  }

  void find_bounds() {
    cpu::ThreadPool threads(2);
    std::vector<std::int32_t> whole;
    for (int seq = 0; seq <= batch; ++seq) whole.push_back(seq * context);
    for (int layer = 0; layer < layers; ++layer) {
      bounds.emplace_back(layer_values / static_cast<std::size_t>(block_size) * 2);
      UpdateBlockBoundsArgs args = update(layer);
      args.query_start_loc = whole.data();
      cpu::update_block_bounds(threads, args);
    }
  }

  [[nodiscard]] PagedAttentionArgs attention(int layer) {
    PagedAttentionArgs args;
    args.q = q.data(), args.q_stride = kHeads * kHeadDim, args.out = out.data();
    args.cache = {.dtype = Dtype::f16,
                  .num_blocks = batch * blocks_per_seq,
                  .num_kv_heads = kKvHeads,
                  .block_size = block_size,
                  .head_dim = kHeadDim};
    args.cache.k = k.data() + layer_values * static_cast<std::size_t>(layer);
    args.cache.v = v.data() + layer_values * static_cast<std::size_t>(layer);
    args.block_tables = tables.data(), args.max_blocks_per_seq = blocks_per_seq;
    args.query_start_loc = starts.data(), args.context_lens = contexts.data();
    args.num_seqs = batch, args.num_heads = kHeads, args.scale = 0.0883883F;
    return args;
  }
  [[nodiscard]] UpdateBlockBoundsArgs update(int layer) {
    const PagedAttentionArgs args = attention(layer);
    return {args.cache,           bounds[static_cast<std::size_t>(layer)].data(),
            args.block_tables,    args.max_blocks_per_seq,
            args.query_start_loc, args.context_lens,
            args.num_seqs};
  }
  [[nodiscard]] ChooseCriticalBlocksArgs choose(int layer) {
    const PagedAttentionArgs args = attention(layer);
    return {.q = args.q,
            .q_stride = args.q_stride,
            .cache = args.cache,
            .bounds = bounds[static_cast<std::size_t>(layer)].data(),
            .block_tables = args.block_tables,
            .max_blocks_per_seq = args.max_blocks_per_seq,
            .context_lens = args.context_lens,
            .budgets = budgets.data(),
            .num_seqs = batch,
            .num_heads = kHeads,
            .upper_bounds = upper_bounds.data(),
            .chosen = {.stride = blocks_per_seq,
                       .block_tables = chosen_tables.data(),
                       .context_lens = chosen_contexts.data(),
                       .query_start_loc = chosen_starts.data()}};
  }
};

void all_blocks(State& state) {
  cpu::ThreadPool threads(static_cast<int>(state.range(0)));
  cpu::Workspace workspace;
  CriticalCase work(state);
  int layer = 0;
  for (auto _ : state) {
    cpu::paged_attention(threads, workspace, work.attention(layer));
    layer = (layer + 1) % work.layers;
  }
}

// Of it, bounds and choice: `with_attention` false.
void some_blocks(State& state, bool with_attention) {
  cpu::ThreadPool threads(static_cast<int>(state.range(0)));
  cpu::Workspace workspace;
  CriticalCase work(state);
  int layer = 0;
  for (auto _ : state) {
    cpu::update_block_bounds(threads, work.update(layer));
    const ChooseCriticalBlocksArgs choice = work.choose(layer);
    cpu::choose_critical_blocks(threads, workspace, choice);
    if (with_attention) cpu::critical_attention(threads, workspace, work.attention(layer), choice.chosen);
    layer = (layer + 1) % work.layers;
  }
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"threads", "batch", "context", "block_size", "percent"});
  for (const int batch : {1, 8})
    for (const int block_size : {16, 64}) bench->Args({2, batch, 8192, block_size, 25});
  bench->UseRealTime()->MeasureProcessCPUTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK(all_blocks)->Apply(shapes);
BENCHMARK_CAPTURE(some_blocks, critical, true)->Apply(shapes);
BENCHMARK_CAPTURE(some_blocks, choice_only, false)->Apply(shapes);

}  // namespace
}  // namespace dculab::kernels

BENCHMARK_MAIN();

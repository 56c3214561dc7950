// How fast is paged attention on the CPU, for every format of the KV cache? TinyLlama-1.1B's shape: 32 query heads over
// 4 KV heads of 64.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/kv/kivi.hpp"
#include "kernels/kv/kvquant.hpp"
#include "kernels/number_format.hpp"
#include "tests/bench/report.hpp"

namespace dculab::kernels {
namespace {

using benchmark::State;

constexpr int kHeads = 32, kKvHeads = 4, kHeadDim = 64, kResidualTokens = 128;

// The stored bytes of small random numbers; any int8, kivi or kvquant code is one.
std::vector<std::uint16_t> random_cache(Dtype dtype, std::size_t bytes) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> number(-0.05F, 0.05F);
  std::vector<std::uint16_t> some(65521);
  for (std::uint16_t& value : some) {
    const auto fp8 = [&] {
      return dtype == Dtype::fp8_e4m3 ? fp8_e4m3_from_f32(number(random)) : fp8_e5m2_from_f32(number(random));
    };
    if (bits(dtype) >= 16)
      value = f16_from_f32(number(random));
    else if (dtype == Dtype::fp8_e4m3 || dtype == Dtype::fp8_e5m2)
      value = static_cast<std::uint16_t>(fp8() << 8 | fp8());
    else
      value = static_cast<std::uint16_t>(random());
  }
  std::vector<std::uint16_t> cache((bytes + 1) / 2);
  for (std::size_t i = 0; i < cache.size(); ++i) cache[i] = some[i % some.size()];
  return cache;
}

// What a kvquant cache of random codes has beside them: even levels of small numbers, outliers among the first
// channels, and angles for every position.
struct KvQuantParts {
  static constexpr int kWidth = kKvHeads * kHeadDim, kOutliers = kvquant_outliers(kWidth);
  std::vector<float> calibration, cos_sin;
  std::vector<KvQuantOutlier> outliers;  // [2: K and V, layers, tokens, kOutliers]
  std::vector<KvQuantScale> scales;      // [layers, tokens]
  std::size_t tokens;                    // of a layer

  KvQuantParts(Dtype dtype, int layers, std::size_t layer_tokens)
      : cos_sin(layer_tokens * kHeadDim, 0.7F), tokens(layer_tokens) {
    const int levels = 1 << bits(dtype);
    const auto level = [levels](float code) { return 2 * code / static_cast<float>(levels - 1) - 1; };
    for (const float between : {0.0F, 0.0F, 0.5F, 0.5F})  // levels of K and V, bounds between their codes
      for (int code = 0; code < levels - (between > 0 ? 1 : 0); ++code)
        calibration.push_back(level(static_cast<float>(code) + between));
    calibration.resize(calibration.size() + kWidth, 0.0F);
    calibration.resize(calibration.size() + kWidth, 0.05F);
    std::mt19937 random(3);
    for (std::size_t token = 0; token < 2 * tokens * static_cast<std::size_t>(layers); ++token)
      for (int outlier = 0; outlier < kOutliers; ++outlier) {
        const auto channel = outlier * (kWidth / kOutliers) + static_cast<int>(random() % (kWidth / kOutliers));
        outliers.push_back({static_cast<std::uint16_t>(channel), f16_from_f32(0.1F)});
      }
    scales.resize(tokens * static_cast<std::size_t>(layers), {0, f16_from_f32(0.05F)});
  }

  [[nodiscard]] KvQuantExtras of_layer(int layer) {
    const std::size_t first = tokens * static_cast<std::size_t>(layer);
    return {.calibration = calibration.data(),
            .k_outliers = &outliers[first * kOutliers],
            .v_outliers = &outliers[outliers.size() / 2 + first * kOutliers],
            .v_scales = &scales[first],
            .cos_sin = cos_sin.data(),
            .width = kWidth};
  }
};

// Attention of the last `tokens` tokens of `batch` sequences over shuffled blocks. Arguments: threads, batch, context,
// tokens, block_size. Layers in turn as an engine has them, so that a decode finds nothing in a cache.
struct AttentionCase {
  int batch, context, tokens, block_size, blocks_per_seq, layers;
  KvCacheView view;
  std::size_t layer_bytes;  // K (or V)
  std::vector<std::uint16_t> k, v, residual;
  std::vector<float> q, out, scales;
  std::vector<std::int32_t> tables, starts, contexts, rows;
  std::optional<KvQuantParts> kvquant;

  AttentionCase(const State& state, Dtype dtype)
      : batch(static_cast<int>(state.range(1))),
        context(static_cast<int>(state.range(2))),
        tokens(static_cast<int>(state.range(3))),
        block_size(static_cast<int>(state.range(4))),
        blocks_per_seq((context + block_size - 1) / block_size),
        layers(tokens > 1 ? 1 : std::max(1, (1 << 28) / (batch * context * kKvHeads * kHeadDim * bits(dtype) / 4))),
        view{.dtype = dtype,
             .num_blocks = batch * blocks_per_seq,
             .num_kv_heads = kKvHeads,
             .block_size = block_size,
             .head_dim = kHeadDim},
        layer_bytes(static_cast<std::size_t>(
            (is_kivi(dtype) ? kv_storage(dtype, values(), kHeadDim) : storage(dtype, values())).value())),
        k(random_cache(dtype, layer_bytes * static_cast<std::size_t>(layers))),
        residual(random_cache(Dtype::f16, static_cast<std::size_t>(batch * kKvHeads * kResidualTokens * kHeadDim * 2))),
        q(static_cast<std::size_t>(batch * tokens * kHeads * kHeadDim)),
        out(q.size()),
        scales(dtype == Dtype::int8 ? static_cast<std::size_t>(values() / kHeadDim) : 0, 0.05F / 127),
        tables(static_cast<std::size_t>(batch * blocks_per_seq)),
        contexts(static_cast<std::size_t>(batch), context),
        rows(static_cast<std::size_t>(batch)) {
    std::mt19937 random(2);
    std::uniform_real_distribution<float> number(-1.0F, 1.0F);
    for (float& value : q) value = number(random);
    std::iota(tables.begin(), tables.end(), 0);
    std::shuffle(tables.begin(), tables.end(), std::mt19937(1));
    std::iota(rows.begin(), rows.end(), 0);
    for (int seq = 0; seq <= batch; ++seq) starts.push_back(seq * tokens);
    for (int layer = 0; layer < layers && is_kivi(dtype); ++layer) scale_units(at(k, layer));
    if (is_kvquant(dtype)) kvquant.emplace(dtype, layers, static_cast<std::size_t>(view.num_blocks * block_size));
    v = k;
  }

  [[nodiscard]] double values() const { return double{1} * batch * blocks_per_seq * block_size * kKvHeads * kHeadDim; }
  [[nodiscard]] void* at(std::vector<std::uint16_t>& cache, int layer) const {
    return reinterpret_cast<std::byte*>(cache.data()) + layer_bytes * static_cast<std::size_t>(layer);
  }
  // Random codes of a layer stand for small numbers then.
  void scale_units(void* pool) const {
    const KiviLayout layout(view);
    for (std::ptrdiff_t record = 0; record < std::ptrdiff_t{view.num_blocks} * kKvHeads; ++record) {
      const KiviUnit first = layout.unit(pool, record, 0);
      std::fill_n(first.scale, layout.units, f16_from_f32(0.1F / static_cast<float>((1 << layout.code_bits) - 1)));
      std::fill_n(first.zero, layout.units, f16_from_f32(-0.05F));
    }
  }
  [[nodiscard]] PagedAttentionArgs args(int layer) {
    PagedAttentionArgs args;
    args.q = q.data(), args.q_stride = kHeads * kHeadDim, args.out = out.data();
    args.cache = view;
    args.cache.k = at(k, layer), args.cache.v = at(v, layer);
    if (view.dtype == Dtype::int8) args.cache.extras = kernels::Int8KvScales{scales.data(), scales.data()};
    if (is_kivi(view.dtype))
      args.cache.extras =
          kernels::KiviExtras{{residual.data(), residual.data(), kResidualTokens},
                              {q.data(), q.data(), kHeads * kHeadDim, rows.data()}};  // any numbers will do
    if (kvquant) args.cache.extras = kvquant->of_layer(layer);
    args.block_tables = tables.data(), args.max_blocks_per_seq = blocks_per_seq;
    args.query_start_loc = starts.data(), args.context_lens = contexts.data();
    args.num_seqs = batch, args.num_heads = kHeads, args.scale = 0.125F;
    return args;
  }
};

// bytes/s counts K and V of the context once, scales included; for kivi as if none of it were in the residual.
void attention(State& state, Dtype dtype) {
  cpu::ThreadPool threads(static_cast<int>(state.range(0)));
  cpu::Workspace workspace;
  AttentionCase work(state, dtype);
  int layer = 0;
  for (auto _ : state) {
    cpu::paged_attention(threads, workspace, work.args(layer));
    layer = (layer + 1) % work.layers;
  }
  const double pairs = (work.context - (work.tokens - 1) / 2.0) * work.tokens * work.batch;  // scored, per head
  const double values = 2.0 * work.batch * work.context * kKvHeads * kHeadDim;
  report(state, kv_storage(dtype, values, kHeadDim, kKvHeads).value(), 4.0 * pairs * kHeads * kHeadDim);
}

void attention_shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"threads", "batch", "context", "tokens", "block_size"});
  for (const int block_size : {1, 16, 128}) bench->Args({2, 1, 8192, 1, block_size});
  bench->Args({1, 1, 8192, 1, 16})->Args({2, 1, 512, 1, 16})->Args({2, 16, 2048, 1, 16});
  bench->Args({1, 1, 512, 512, 16})->Args({2, 1, 512, 512, 16})->Args({2, 1, 2048, 2048, 16});
  bench->UseRealTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK_CAPTURE(attention, f32, Dtype::f32)->Apply(attention_shapes);
BENCHMARK_CAPTURE(attention, f16, Dtype::f16)->Apply(attention_shapes);
BENCHMARK_CAPTURE(attention, bf16, Dtype::bf16)->Apply(attention_shapes);
BENCHMARK_CAPTURE(attention, fp8_e4m3, Dtype::fp8_e4m3)->Apply(attention_shapes);
BENCHMARK_CAPTURE(attention, fp8_e5m2, Dtype::fp8_e5m2)->Apply(attention_shapes);
BENCHMARK_CAPTURE(attention, int8, Dtype::int8)->Apply(attention_shapes);
BENCHMARK_CAPTURE(attention, kivi4, Dtype::kivi4)->Apply(attention_shapes);
BENCHMARK_CAPTURE(attention, kivi2, Dtype::kivi2)->Apply(attention_shapes);
BENCHMARK_CAPTURE(attention, kvquant4, Dtype::kvquant4)->Apply(attention_shapes);
BENCHMARK_CAPTURE(attention, kvquant3, Dtype::kvquant3)->Apply(attention_shapes);
BENCHMARK_CAPTURE(attention, kvquant2, Dtype::kvquant2)->Apply(attention_shapes);

}  // namespace
}  // namespace dculab::kernels

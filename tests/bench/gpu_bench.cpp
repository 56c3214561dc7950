// How close the GPU kernels come to the device's own limits, on the shapes of Llama-3-8B.
//
// Prints, as medians between the device's events:
//   decode attention: KV bytes / time, as a share of the measured copy bandwidth, by batch, context and KV heads
//   GPTQ and half products with one row: weight bytes / time, as the same share
//   half products with many rows, and prefill attention: FLOP / time
// Whatever is read is spread over so much memory that no cache holds it from one launch to the next. Nothing is
// asserted: the last lines, which scripts/gpu-validate reads, set the lowest shares beside the aims.
// Usage: DCULAB_TEST_DEVICE=hip:0|cuda:0 gpu_bench; without it the host plays the GPU on tiny shapes, to show that this
// works.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "core/error.hpp"
#include "engine/executors/open_executor.hpp"
#include "engine/probe/gpu_probe.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"
#include "study/decide/stack_limits.hpp"
#include "tests/bench/gpu_bench_setup.hpp"

namespace {

using namespace dculab;
using namespace dculab::bench;

constexpr double kDecodeAim = 0.75;  // of the copy bandwidth, from batch 16 and context 4096 on
constexpr double kGptqAim = 0.70;

Seconds time_decode(const Bench& bench, const PagedCache& cache, int batch, int context, int partition_tokens) {
  const Shapes& shapes = bench.shapes;
  const DeviceMemory q = bench.random(halves(1.0 * batch * shapes.heads * shapes.head_dim));
  const DeviceMemory out = bench.random(halves(1.0 * batch * shapes.heads * shapes.head_dim));
  const DeviceMemory workspace(bench.device,
                               sizeof(float) * static_cast<std::size_t>(lower::dculab_gpu::paged_attention_workspace(
                                                   batch, shapes.heads, shapes.head_dim, context, partition_tokens)));
  return bench.time([&](int index) {
    bench.device->paged_attention({.q = {q.as(), Dtype::f16},
                                   .q_stride = shapes.heads * shapes.head_dim,
                                   .cache = cache.layer(index),
                                   .block_tables = cache.tables(),
                                   .max_blocks_per_seq = cache.max_blocks(),
                                   .context_lens = cache.contexts(),
                                   .max_context_len = context,
                                   .out = {out.as(), Dtype::f16},
                                   .num_seqs = batch,
                                   .num_heads = shapes.heads,
                                   .scale = 0.1F,
                                   .partition_tokens = partition_tokens,
                                   .workspace = workspace.as<float>()});
  });
}

// What was reached of the copy bandwidth, beside what is aimed at.
void print_aim(const char* what, double lowest, double aim) {
  std::printf("aim: %s: lowest %.1f %%, at least %.0f %% of copy\n", what, 100 * lowest, 100 * aim);
}

// Returns the lowest share at the engine's cut; nothing where no shape fits.
std::optional<double> decode_attention(const Bench& bench) {
  const Shapes& shapes = bench.shapes;
  const int engine_partition = EngineOptions{}.attention_split.partition_tokens;
  std::printf(
      "\nDecode attention, %d query heads of %d, blocks of %d; partitions of %d tokens as the engine cuts them, which "
      "decide, and beside them as many as fill the device\n%6s %8s %9s %10s %9s %12s %9s\n",
      shapes.heads, shapes.head_dim, shapes.block_size, engine_partition, "batch", "context", "KV heads", "us", "share",
      "us, filled", "share");
  std::vector<double> reached;
  for (const int batch : shapes.batches)
    for (const int context : shapes.contexts)
      for (const int kv_heads : shapes.kv_heads) {
        const double bytes = 4.0 * batch * context * kv_heads * shapes.head_dim;
        if (!bench.has_room(bytes * bench.copies(bytes))) {
          std::printf("%6d %8d %9d %10s\n", batch, context, kv_heads, "does not fit");
          continue;
        }
        const PagedCache cache(bench, batch, context, kv_heads);
        const int filling = study::partition_that_fills(batch, shapes.heads, shapes.heads / kv_heads, context,
                                                        bench.device->info().compute_units);
        const Seconds engine_cut = time_decode(bench, cache, batch, context, engine_partition);
        const Seconds filled = time_decode(bench, cache, batch, context, filling);
        const double engine_share = share_of_copy(bench, bytes, engine_cut);
        const double filled_share = share_of_copy(bench, bytes, filled);
        reached.push_back(engine_share);
        std::printf("%6d %8d %9d %10.1f %7.1f %% %12.1f %7.1f %%\n", batch, context, kv_heads, 1e6 * engine_cut.value(),
                    100 * engine_share, 1e6 * filled.value(), 100 * filled_share);
      }
  if (reached.empty()) return {};
  std::sort(reached.begin(), reached.end());
  const auto enough = std::count_if(reached.begin(), reached.end(), [](double share) { return share >= kDecodeAim; });
  std::printf("the engine's cut: lowest %.1f %%, median %.1f %%; %ld of %zu reach %.0f %%\n", 100 * reached.front(),
              100 * reached[reached.size() / 2], static_cast<long>(enough), reached.size(), 100 * kDecodeAim);
  return reached.front();
}

// y[1, n] = x[1, k] w: int4 weights, a half scale and an int4 zero for each group. Returns the lowest share.
double gptq_products(const Bench& bench) {
  std::printf("\nGPTQ int4 product of one row, groups of %d\n%14s %7s %7s %9s %9s\n", bench.shapes.group_size, "matrix",
              "n", "k", "us", "share");
  double lowest = 1e9;
  for (const Matrix& matrix : bench.shapes.matrices) {
    const double values = 1.0 * matrix.n * matrix.k, groups = matrix.k / bench.shapes.group_size;
    const double bytes = values / 2 + groups * matrix.n * 2.5;
    std::vector<DeviceMemory> qweight, qzeros, scales;
    for (int copy = 0; copy < bench.copies(bytes); ++copy) {
      qweight.push_back(bench.random(static_cast<std::size_t>(values / 2)));
      qzeros.push_back(bench.random(static_cast<std::size_t>(groups * matrix.n / 2)));
      scales.push_back(bench.random(halves(groups * matrix.n)));
    }
    const DeviceMemory x = bench.random(halves(matrix.k)), y = bench.random(halves(matrix.n));
    const DeviceMemory workspace(bench.device,
                                 sizeof(float) * lower::dculab_gpu::gptq_matmul_workspace(1, matrix.n, matrix.k));
    const Seconds time = bench.time([&](int index) {
      const std::size_t copy = static_cast<std::size_t>(index) % qweight.size();
      bench.device->gptq_matmul({.x = {x.as(), Dtype::f16},
                                 .weight = {.qweight = qweight[copy].as<std::uint32_t>(),
                                            .qzeros = qzeros[copy].as<std::uint32_t>(),
                                            .scales = scales[copy].as<std::uint16_t>(),
                                            .in_features = matrix.k,
                                            .out_features = matrix.n,
                                            .group_size = bench.shapes.group_size},
                                 .y = {y.as(), Dtype::f16},
                                 .m = 1,
                                 .y_stride = matrix.n,
                                 .workspace = workspace.as<float>()});
    });
    const double share = share_of_copy(bench, bytes, time);
    lowest = std::min(lowest, share);
    std::printf("%14s %7d %7d %9.1f %7.1f %%\n", matrix.name, matrix.n, matrix.k, 1e6 * time.value(), 100 * share);
  }
  return lowest;
}

Seconds time_half_product(const Bench& bench, const Matrix& matrix, int m) {
  const double bytes = 2.0 * matrix.n * matrix.k;
  std::vector<DeviceMemory> weights;
  for (int copy = 0; copy < bench.copies(bytes); ++copy) weights.push_back(bench.random(halves(bytes / 2)));
  const DeviceMemory x = bench.random(halves(1.0 * m * matrix.k)), y = bench.random(halves(1.0 * m * matrix.n));
  const DeviceMemory workspace(bench.device,
                               sizeof(float) * lower::dculab_gpu::matmul_workspace(m, matrix.n, matrix.k));
  return bench.time([&](int index) {
    bench.device->matmul({.x = {x.as(), Dtype::f16},
                          .w = {weights[static_cast<std::size_t>(index) % weights.size()].as(), Dtype::f16},
                          .y = {y.as(), Dtype::f16},
                          .m = m,
                          .n = matrix.n,
                          .k = matrix.k,
                          .y_stride = matrix.n,
                          .workspace = workspace.as<float>()});
  });
}

void half_products(const Bench& bench) {
  std::printf("\nHalf product\n%14s %7s %7s %7s %9s %9s %12s\n", "matrix", "m", "n", "k", "us", "share", "TFLOP/s");
  for (const Matrix& matrix : bench.shapes.matrices) {
    const double bytes = 2.0 * matrix.n * matrix.k;
    const Seconds one = time_half_product(bench, matrix, 1);
    std::printf("%14s %7d %7d %7d %9.1f %7.1f %%\n", matrix.name, 1, matrix.n, matrix.k, 1e6 * one.value(),
                100 * share_of_copy(bench, bytes, one));
    for (const int m : bench.shapes.rows) {
      const Seconds many = time_half_product(bench, matrix, m);
      std::printf("%14s %7d %7d %7d %9.1f %9s %12.3g\n", matrix.name, m, matrix.n, matrix.k, 1e6 * many.value(), "",
                  m * bytes / many.value() / 1e12);
    }
  }
}

void prefill_attention(const Bench& bench) {
  const Shapes& shapes = bench.shapes;
  std::printf("\nPrefill attention, one sequence, %d query heads of %d, %d KV heads\n%8s %10s %12s\n", shapes.heads,
              shapes.head_dim, shapes.prefill_kv_heads, "tokens", "us", "TFLOP/s");
  for (const int tokens : shapes.prompts) {
    const PagedCache cache(bench, 1, tokens, shapes.prefill_kv_heads);
    const DeviceMemory q = bench.random(halves(1.0 * tokens * shapes.heads * shapes.head_dim));
    const DeviceMemory out = bench.random(halves(1.0 * tokens * shapes.heads * shapes.head_dim));
    const DeviceMemory starts = bench.upload(std::vector<std::int32_t>{0, tokens});
    const Seconds time = bench.time([&](int index) {
      bench.device->prefill_attention({.q = {q.as(), Dtype::f16},
                                       .q_stride = shapes.heads * shapes.head_dim,
                                       .cache = cache.layer(index),
                                       .block_tables = cache.tables(),
                                       .max_blocks_per_seq = cache.max_blocks(),
                                       .query_start_loc = starts.as<std::int32_t>(),
                                       .context_lens = cache.contexts(),
                                       .max_query_len = tokens,
                                       .out = {out.as(), Dtype::f16},
                                       .num_seqs = 1,
                                       .num_heads = shapes.heads,
                                       .scale = 0.1F});
    });
    // Scores and weighted sums of every pair of query and earlier token.
    const double flops = 4.0 * shapes.head_dim * shapes.heads * 0.5 * tokens * (tokens + 1.0);
    std::printf("%8d %10.1f %12.3g\n", tokens, 1e6 * time.value(), flops / time.value() / 1e12);
  }
}

void run(const std::string& device_name) {
  const engine::DeviceChoice choice = engine::parse_device(device_name);
  if (choice.kind == engine::DeviceKind::cpu) throw InputError("DCULAB_TEST_DEVICE: use hip:N, cuda:N or host-gpu");
  const engine::OpenDevice open = engine::open_device(choice);
  const bool emulated = choice.kind == engine::DeviceKind::host_gpu;
  const gpu::DeviceInfo info = open.gpu->info();
  if (emulated) std::printf("EMULATED: the host plays the GPU on tiny shapes; no figure below means anything\n");
  std::printf("%s, %d compute units, waves of %d\n", info.name.c_str(), info.compute_units, info.wave_size);
  const auto reality = emulated ? engine::DeviceReality::emulated : engine::DeviceReality::real;
  const Bench bench{open.gpu, emulated ? kTiny : kReal, emulated ? engine::kEmulationEffort : engine::kDeviceEffort,
                    engine::measure_copy_bandwidth(open.gpu, reality)};
  std::printf("copy bandwidth %.1f GB/s, read and written; shares below are of it\n", bench.copy.value() / 1e9);
  const std::optional<double> decode = decode_attention(bench);
  const double gptq = gptq_products(bench);
  half_products(bench);
  prefill_attention(bench);
  std::printf("\ncopy bandwidth at the end %.1f GB/s\n",
              engine::measure_copy_bandwidth(open.gpu, reality).value() / 1e9);
  if (decode) print_aim("decode attention", *decode, kDecodeAim);
  print_aim("GPTQ GEMV", gptq, kGptqAim);
}

}  // namespace

int main() {
  const char* device = std::getenv("DCULAB_TEST_DEVICE");
  try {
    run(device == nullptr ? "host-gpu" : device);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 2;
  }
  return 0;
}

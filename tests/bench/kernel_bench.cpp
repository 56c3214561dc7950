// How fast are the CPU kernels, beside a plain streaming read and a plain multiply-add loop on the same threads?
// bytes_per_second and flop_per_second are what the kernel must move and compute, each byte counted once.
#include <benchmark/benchmark.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/number_format.hpp"
#include "tests/bench/report.hpp"

namespace dculab::kernels {
namespace {

using benchmark::State;

std::vector<float> random_floats(std::size_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> value(-1.0F, 1.0F);
  std::vector<float> values(count);
  for (float& v : values) v = value(random);
  return values;
}

// Small pseudo-random F16 numbers; `count` is rounded up to a power of two of them repeated.
std::vector<std::uint16_t> random_f16(std::size_t count) {
  const std::vector<float> some = random_floats(1 << 16);
  std::vector<std::uint16_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = f16_from_f32(some[i * 31 % some.size()] * 0.05F);
  return values;
}

// The read bandwidth that a plain loop reaches: sums 1 GiB.
void streaming_read(State& state) {
  cpu::ThreadPool threads(static_cast<int>(state.range(0)));
  const std::vector<std::uint64_t> data(std::size_t{1} << 27, 1);
  std::vector<std::uint64_t> sums(64);
  constexpr int kTasks = 1024;
  for (auto _ : state) {
    threads.parallel_for(kTasks, [&](int task, int worker) {
      const std::size_t part = data.size() / kTasks;
      const std::uint64_t* begin = data.data() + part * static_cast<std::size_t>(task);
      sums[static_cast<std::size_t>(worker) * 8] += std::accumulate(begin, begin + part, std::uint64_t{0});
    });
    benchmark::ClobberMemory();
  }
  report(state, static_cast<double>(data.size()) * 8, 0);
}

#if defined(__x86_64__)
// The multiply-add rate that a plain loop reaches: 16 different chains of 512-bit vectors.
__attribute__((target("avx512f"))) float multiply_add_avx512(int rounds, float start) {
  __m512 sums[16];
  for (int i = 0; i < 16; ++i) sums[i] = _mm512_set1_ps(start + static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.5F), b = _mm512_set1_ps(0.25F);
  for (int round = 0; round < rounds; ++round) {
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, a, b);
  }
  float total = 0;
  for (const __m512& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}

void multiply_add(State& state) {
  if (!__builtin_cpu_supports("avx512f")) return state.SkipWithError("needs AVX-512");
  cpu::ThreadPool threads(static_cast<int>(state.range(0)));
  constexpr int kRounds = 1 << 16, kTasks = 64;
  for (auto _ : state) {
    threads.parallel_for(kTasks, [&](int task, int) {
      benchmark::DoNotOptimize(multiply_add_avx512(kRounds, static_cast<float>(task)));
    });
  }
  report(state, 0, 2.0 * 16 * 16 * kRounds * kTasks);
}
BENCHMARK(multiply_add)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond);
#endif

// Arguments: threads, m, n, k. Weights of at least 256 MiB in turn, so that none is found in a cache.
void matmul_f16(State& state) {
  cpu::ThreadPool threads(static_cast<int>(state.range(0)));
  const auto m = static_cast<int>(state.range(1)), n = static_cast<int>(state.range(2)),
             k = static_cast<int>(state.range(3));
  const std::size_t matrix = static_cast<std::size_t>(n) * static_cast<std::size_t>(k);
  const std::size_t matrices = m <= 16 ? (std::size_t{1} << 27) / matrix + 1 : 1;
  const std::vector<std::uint16_t> weights = random_f16(matrix * matrices);
  const std::vector<float> x = random_floats(static_cast<std::size_t>(m) * static_cast<std::size_t>(k));
  std::vector<float> y(static_cast<std::size_t>(m) * static_cast<std::size_t>(n));
  cpu::Workspace workspace;
  std::size_t turn = 0;
  for (auto _ : state) {
    MatmulArgs args;
    args.x = x.data(), args.y = y.data(), args.m = m, args.k = k;
    args.weights[0] = {weights.data() + matrix * turn, Dtype::f16, n};
    cpu::matmul(threads, workspace, args);
    turn = (turn + 1) % matrices;
  }
  report(state, 2.0 * static_cast<double>(matrix), 2.0 * m * static_cast<double>(matrix));
}

void matmul_shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"threads", "m", "n", "k"});
  for (const int m : {1, 2, 4, 8, 16, 64, 512}) {
    for (const auto& [n, k] : {std::pair{2048, 2048}, std::pair{5632, 2048}, std::pair{2048, 5632}}) {
      bench->Args({2, m, n, k});
    }
  }
  bench->Args({1, 1, 5632, 2048})->Args({1, 512, 2048, 2048})->Args({2, 1, 32000, 2048});
}

BENCHMARK(streaming_read)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(matmul_f16)->Apply(matmul_shapes)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace dculab::kernels

BENCHMARK_MAIN();

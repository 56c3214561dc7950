// What a lane costs on the host build of the GPU kernels: on its own, per barrier and per shuffle.
#include <benchmark/benchmark.h>

#include "kernels/gpu/runtime.hpp"

namespace dculab::kernels::gpu::host_build {
namespace {

constexpr int kMeetings = 64;  // of each lane: what starting a lane costs hardly shows

// Time per lane and meeting of one workgroup of `threads` lanes.
void measure(benchmark::State& state, int threads, const std::function<void()>& lane, int meetings) {
  const host::Grid grid{.threads = threads};
  for (auto _ : state) host::run_grid(grid, {}, lane);
  state.counters["s_per_lane_and_meeting"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * threads * meetings,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void BM_Barrier(benchmark::State& state) {
  const auto lane = [] {
    for (int i = 0; i < kMeetings; ++i) barrier();
  };
  measure(state, static_cast<int>(state.range(0)), lane, kMeetings);
}
BENCHMARK(BM_Barrier)->Arg(64)->Arg(256)->Arg(1024);

void BM_Shuffle(benchmark::State& state) {
  const auto lane = [] {
    int value = thread_index();
    for (int i = 0; i < kMeetings; ++i) value = shuffle_xor<64>(value, 1 << i % 6);
    benchmark::DoNotOptimize(value);
  };
  measure(state, static_cast<int>(state.range(0)), lane, kMeetings);
}
BENCHMARK(BM_Shuffle)->Arg(64)->Arg(256)->Arg(1024);

void BM_LaneThatMeetsNobody(benchmark::State& state) {
  measure(
      state, static_cast<int>(state.range(0)), [] { benchmark::DoNotOptimize(thread_index()); }, 1);
}
BENCHMARK(BM_LaneThatMeetsNobody)->Arg(256);

void BM_LaneThatMeetsOnce(benchmark::State& state) {
  measure(
      state, static_cast<int>(state.range(0)), [] { barrier(); }, 1);
}
BENCHMARK(BM_LaneThatMeetsOnce)->Arg(256);

}  // namespace
}  // namespace dculab::kernels::gpu::host_build

BENCHMARK_MAIN();

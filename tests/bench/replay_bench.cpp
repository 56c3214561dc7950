// How fast a trace is replayed, in wave accesses (ranges of one instruction) and in lines of the first level.
#include <benchmark/benchmark.h>

#include "sim/memory/cache_replay.hpp"
#include "tests/sim/address_traces.hpp"
#include "tests/sim/machines.hpp"

namespace {

using namespace dculab;
using namespace dculab::sim;

void replay(benchmark::State& state, const Machine& machine, const AddressTrace& trace, ReuseMeasurement reuse) {
  double lines = 0;
  for (auto _ : state) {
    const CacheReplay result = replay_cache(machine, trace, {.workgroups_per_unit = 8, .reuse = reuse});
    lines += static_cast<double>(result.loads.lines + result.stores.lines);
  }
  const auto accesses = static_cast<double>(state.iterations()) * static_cast<double>(trace.accesses.size());
  state.counters["accesses/s"] = benchmark::Counter(accesses, benchmark::Counter::kIsRate);
  state.counters["lines/s"] = benchmark::Counter(lines, benchmark::Counter::kIsRate);
}

// 256 MiB of contexts; range(0): bytes of an instruction, range(1): workgroups that read the same context.
void attention(benchmark::State& state, const Machine& machine, ReuseMeasurement reuse) {
  replay(
      state, machine,
      test::attention_like(256, static_cast<int>(state.range(1)), 1 << 20, static_cast<std::uint32_t>(state.range(0))),
      reuse);
}

void random_ranges(benchmark::State& state, const Machine& machine) {
  replay(state, machine, test::random_trace(1, 64 << 20), ReuseMeasurement::off);
}

// 65536 workgroups of 4 waves that load once.
void short_workgroups(benchmark::State& state, const Machine& machine) {
  replay(state, machine, test::attention_like(1 << 16, 1, 4096, 1024), ReuseMeasurement::off);
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"bytes", "readers"})->Unit(benchmark::kMillisecond);
  for (const int bytes : {128, 256, 512, 1024})
    for (const int readers : {1, 4}) bench->Args({bytes, readers});
}

// As hwmodels/mi50.yaml has it.
Machine mi50() {
  Machine machine = test::mi50_like();
  machine.memory[0].ways = 4;
  machine.memory[1].ways = 16;
  return machine;
}

BENCHMARK_CAPTURE(attention, mi50, mi50(), ReuseMeasurement::off)->Apply(shapes);
BENCHMARK_CAPTURE(attention, a100, test::a100_like(), ReuseMeasurement::off)->Apply(shapes);
BENCHMARK_CAPTURE(attention, mi50_reuse, mi50(), ReuseMeasurement::on)->Apply(shapes);
BENCHMARK_CAPTURE(random_ranges, mi50, mi50())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(short_workgroups, mi50, mi50())->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();

// What every kernel's benchmark reports.
#pragma once

#include <benchmark/benchmark.h>

namespace dculab::kernels {

inline void report(benchmark::State& state, double bytes, double flop) {
  using benchmark::Counter;
  state.counters["bytes/s"] = Counter(bytes, Counter::kIsIterationInvariantRate, Counter::kIs1000);
  state.counters["flop/s"] = Counter(flop, Counter::kIsIterationInvariantRate, Counter::kIs1000);
}

}  // namespace dculab::kernels

// Times several runs of one measurement.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/probe/host_measurements.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace dculab::engine {

// How much time the probe spends.
struct Effort {
  Seconds sample;           // one run
  int runs = 1;             // of which the median counts
  int matmul_runs = 1;      // of products whose weights come from memory, copied anew before each
  int search_runs = 1;      // per candidate when the fastest variant is sought
  Bytes dram;               // memory that is read as DRAM, if there is that much
  int dram_rounds = 1;      // tries to read DRAM without other load; the quietest counts
  double sweep_growth = 2;  // from one working set to the next
};

[[nodiscard]] inline Seconds wall_clock() {
  return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// CPU time of the calling thread: what it costs when others take turns on the CPU does not count.
[[nodiscard]] inline Seconds thread_clock() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

enum class SampleClock : std::uint8_t { wall, thread };

template <typename Fn>
[[nodiscard]] Seconds time_run(SampleClock clock, Fn&& fn) {
  const auto now = [clock] { return clock == SampleClock::wall ? wall_clock() : thread_clock(); };
  const Seconds start = now();
  fn();
  return std::max(now() - start, kNanosecond);
}

// How often to repeat fn(repeats) so that it takes about `sample`. Also warms up whatever fn needs warm. The shortest
// of three tries counts: an interruption would otherwise make all samples too short.
template <typename Fn>
[[nodiscard]] std::int64_t choose_repeats(SampleClock clock, Seconds sample, Fn&& fn) {
  for (std::int64_t repeats = 1;; repeats *= 4) {
    Seconds taken = time_run(clock, [&] { fn(repeats); });
    for (int again = 0; again < 2; ++again) taken = std::min(taken, time_run(clock, [&] { fn(repeats); }));
    if (taken >= 0.1 * sample) {
      return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(repeats) * (sample / taken)));
    }
  }
}

template <typename Q>
[[nodiscard]] Spread<Q> spread_of(std::vector<Q> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

// Runs work(task) -> amount on every thread at once and adds up each thread's amount per CPU time of its own. For
// resources that a core does not share: a neighbour that takes turns on the CPU must not make them look slow, or
// honest measurements would later seem to beat the peak.
template <typename Rate, typename Work>
[[nodiscard]] Rate sum_of_rates(kernels::cpu::ThreadPool& team, Work&& work) {
  std::vector<Rate> rates(static_cast<std::size_t>(team.num_threads()));
  team.parallel_for(
      team.num_threads(),
      [&](int task, int) {
        const Seconds start = thread_clock();
        const auto amount = work(task);
        rates[static_cast<std::size_t>(task)] = amount / std::max(thread_clock() - start, kNanosecond);
      },
      kernels::cpu::Distribution::fixed);
  Rate sum;
  for (const Rate& rate : rates) sum += rate;
  return sum;
}

// 1, 2, 4, ... and `all`.
[[nodiscard]] inline std::vector<int> thread_counts(int all) {
  std::vector<int> counts;
  for (int threads = 1; threads < all; threads *= 2) counts.push_back(threads);
  counts.push_back(all);
  return counts;
}

}  // namespace dculab::engine

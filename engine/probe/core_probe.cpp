#include "engine/probe/core_probe.hpp"

#include "kernels/cpu/probe/dependent_chain.hpp"

namespace dculab::engine {

using kernels::cpu::Arithmetic;
using kernels::cpu::Distribution;
using kernels::cpu::ThreadPool;

Hertz measure_clock(const Effort& effort) {
  constexpr std::int64_t kAdds = 100'000;
  const auto add = [](std::int64_t repeats) { kernels::cpu::add_dependent(repeats * kAdds); };
  const std::int64_t repeats = choose_repeats(SampleClock::thread, effort.sample, add);
  std::vector<Hertz> clocks;
  for (int run = 0; run < effort.runs; ++run) {
    const Seconds taken = time_run(SampleClock::thread, [&] { add(repeats); });
    clocks.push_back(Cycles(static_cast<double>(repeats * kAdds)) / taken);
  }
  return spread_of(clocks).median;
}

ArithmeticRate measure_arithmetic(ThreadPool& team, Arithmetic arithmetic, const Effort& effort) {
  constexpr std::int64_t kRounds = 1000;
  const auto compute = [&](std::int64_t repeats) {
    return sum_of_rates<FlopsPerSecond>(
        team, [&](int) { return kernels::cpu::run_arithmetic(arithmetic, repeats * kRounds); });
  };
  const std::int64_t repeats =
      choose_repeats(SampleClock::wall, effort.sample, [&](std::int64_t each) { (void)compute(each); });
  std::vector<FlopsPerSecond> rates;
  for (int run = 0; run < effort.runs; ++run) rates.push_back(compute(repeats));
  return {team.num_threads(), spread_of(rates), ""};
}

Seconds measure_fork_join(ThreadPool& team, const Effort& effort) {
  constexpr int kForks = 20;
  const auto fork = [&](std::int64_t repeats) {
    for (std::int64_t i = 0; i < repeats * kForks; ++i) {
      team.parallel_for(
          team.num_threads(), [](int, int) {}, Distribution::fixed);
    }
  };
  const std::int64_t repeats = choose_repeats(SampleClock::wall, 0.2 * effort.sample, fork);
  std::vector<Seconds> times;
  for (int run = 0; run < effort.runs; ++run) {
    times.push_back(time_run(SampleClock::wall, [&] { fork(repeats); }) / static_cast<double>(repeats * kForks));
  }
  return spread_of(times).lowest;
}

}  // namespace dculab::engine

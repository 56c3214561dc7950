#include "engine/probe/exchange_probe.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "engine/exchange/child_processes.hpp"
#include "engine/exchange/communicator.hpp"
#include "engine/parallel/cpu_shares.hpp"

namespace dculab::engine {
namespace {

constexpr Bytes kLeastExchanged = kKiB, kMostExchanged = 16 * kMiB;
constexpr double kExchangeGrowth = 4;

// What rank 0 has all ranks do.
struct Task {
  ExchangeKind kind = ExchangeKind::meeting;
  std::uint64_t bytes = 0;
  std::uint64_t repeats = 0;  // 0: there is nothing more to do
};

// One rank's values, and what it does with them.
class ExchangeTeam {
 public:
  explicit ExchangeTeam(Communicator& communicator) : communicator_(communicator) {}

  void run(const Task& task) {
    const std::size_t count = task.bytes / sizeof(float);
    values_.resize(std::max(values_.size(), count), 1.0F);
    received_.resize(values_.size());
    for (std::uint64_t repeat = 0; repeat < task.repeats; ++repeat) run_once(task.kind, count);
  }

  // Rank 0: tells the others, and does the same.
  void lead(const Task& task) {
    message_.resize(sizeof task);
    std::memcpy(message_.data(), &task, sizeof task);
    communicator_.broadcast(message_);
    run(task);
  }

  void follow() {
    for (;;) {
      Task task;
      communicator_.broadcast(message_);
      std::memcpy(&task, message_.data(), sizeof task);
      if (task.repeats == 0) return;
      run(task);
    }
  }

 private:
  // Sums of sums soon are infinite, which takes no longer to add.
  void run_once(ExchangeKind kind, std::size_t count) {
    if (kind == ExchangeKind::meeting) return communicator_.meet();
    if (kind == ExchangeKind::all_reduce) return communicator_.all_reduce(std::span(values_).first(count));
    const auto ranks = static_cast<std::size_t>(communicator_.ranks());
    const std::vector<std::size_t> sizes(ranks * ranks, count / ranks * sizeof(float));
    communicator_.all_to_all(std::as_bytes(std::span(values_).first(count)), sizes,
                             reinterpret_cast<std::byte*>(received_.data()));
  }

  Communicator& communicator_;
  std::vector<float> values_, received_;
  std::vector<std::byte> message_;
};

// Many short runs, so that the fastest is one without an interruption on any of the CPUs.
[[nodiscard]] ExchangeMeasurement measure_one(ExchangeTeam& team, ExchangeKind kind, int ranks, Bytes bytes,
                                              const Effort& effort) {
  const auto repeat = [&](std::int64_t repeats) {
    team.lead({kind, static_cast<std::uint64_t>(bytes.value()), static_cast<std::uint64_t>(repeats)});
  };
  constexpr int kShorter = 8;
  const std::int64_t repeats = choose_repeats(SampleClock::wall, effort.sample / kShorter, repeat);
  std::vector<Seconds> times;
  for (int run = 0; run < kShorter * effort.runs; ++run)
    times.push_back(time_run(SampleClock::wall, [&] { repeat(repeats); }) / static_cast<double>(repeats));
  return {kind, ranks, bytes, spread_of(std::move(times))};
}

void measure_ranks(int ranks, const std::vector<int>& cpus, const Effort& effort,
                   std::vector<ExchangeMeasurement>& all) {
  RankGroup group(ranks);
  ChildProcesses children(group, [&](int rank, const std::function<void()>& watch) {
    bind_thread(cpus_of_rank(cpus, rank, ranks));
    Communicator communicator(group, rank, watch);
    ExchangeTeam(communicator).follow();
  });
  bind_thread(cpus_of_rank(cpus, 0, ranks));
  Communicator communicator(group, 0, [&children] { children.require_alive(); });
  ExchangeTeam team(communicator);
  all.push_back(measure_one(team, ExchangeKind::meeting, ranks, Bytes(), effort));
  for (const ExchangeKind kind : {ExchangeKind::all_reduce, ExchangeKind::all_to_all})
    for (Bytes bytes = kLeastExchanged; bytes <= kMostExchanged; bytes *= kExchangeGrowth)
      all.push_back(measure_one(team, kind, ranks, bytes, effort));
  team.lead({});
}

}  // namespace

std::vector<ExchangeMeasurement> measure_exchanges(int most_ranks, const Effort& effort,
                                                   const std::function<void(double share)>& progress) {
  const std::vector<int> cpus = allowed_cpus();
  const int most = std::min(most_ranks, kMostProbedRanks);
  std::vector<ExchangeMeasurement> all;
  for (int ranks = 2; ranks <= most; ++ranks) {
    if (progress) progress(static_cast<double>(ranks - 2) / (most - 1));
    measure_ranks(ranks, cpus, effort, all);
    bind_thread(cpus);
  }
  return all;
}

}  // namespace dculab::engine

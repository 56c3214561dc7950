#include "engine/probe/probe.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>

#include "engine/executors/thread_shortage.hpp"
#include "engine/probe/core_probe.hpp"
#include "engine/probe/exchange_probe.hpp"
#include "engine/probe/explanation.hpp"
#include "engine/probe/foreign_load.hpp"
#include "engine/probe/matmul_probe.hpp"
#include "engine/probe/memory_probe.hpp"
#include "engine/probe/topology.hpp"

namespace dculab::engine {
namespace {

using kernels::cpu::Arithmetic;

constexpr Seconds kSecond{1};
constexpr Bytes kLongestKeptSet = 8 * kMiB;

Effort choose_effort(ProbeMode mode) {
  if (mode == ProbeMode::quick) return {4e-3 * kSecond, 5, 3, 1, kGiB, 1, 2};
  return {12e-3 * kSecond, 25, 9, 5, 2 * kGiB, 3, 1.5};
}

// What a thread has of L2, or of the only cache; and four times the level that holds most.
ProbedMemory kernel_memory(const std::vector<CacheLevel>& caches) {
  const CacheLevel& cache = caches[std::min<std::size_t>(1, caches.size() - 1)];
  Bytes largest;
  for (const CacheLevel& each : caches) largest = std::max(largest, 1.0 * each.instances * each.size);
  return {cache.size / static_cast<double>(std::max(1, cache.cpus_sharing)), 4.0 * largest};
}

// One probe of the host, in the order of its phases.
class HostProbe {
 public:
  explicit HostProbe(const ProbeOptions& options)
      : options_(options), effort_(choose_effort(options.mode)), topology_(read_topology()) {
    const int cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const int threads = options.threads > 0 ? options.threads : cpus;
    result_.exchanges = measure_exchanges(  // before there are threads
        std::min(threads, cpus), effort_, [this](double share) { report("exchanges of processes", 0.02 * share); });
    make_teams(threads);
  }

  HostMeasurements run() {
    const ForeignLoad load;
    describe_host();
    measure_cores();
    measure_memory();
    measure_small_pages();
    result_.foreign_load = load.share();
    explain(result_);
    report("done", 1);
    return std::move(result_);
  }

 private:
  void make_teams(int wanted);
  Team& all_threads() { return *teams_.back(); }

  void report(std::string_view label, double fraction) const {
    if (options_.progress) options_.progress(label, fraction);
  }

  void describe_host();
  void measure_cores();
  void measure_memory();
  LevelMeasurement measure_cache(MemoryProbe& memory, std::size_t index);
  LevelMeasurement measure_dram(MemoryProbe& memory);
  LevelMeasurement measure_quiet_dram(MemoryProbe& memory);
  void sweep_working_sets(MemoryProbe& memory);
  void measure_small_pages();

  ProbeOptions options_;
  Effort effort_;
  Topology topology_;
  std::vector<std::unique_ptr<Team>> teams_;  // 1, 2, 4, ... threads
  HostMeasurements result_;
};

// All teams live at once. Where the system grants too few threads for that, the largest becomes as large as fits.
void HostProbe::make_teams(int wanted) {
  const auto started_for = [](int all) {
    int sum = 0;
    for (const int threads : thread_counts(all)) sum += threads - 1;
    return sum;
  };
  int all = wanted;
  for (;;) {
    teams_.clear();
    int had = 0;
    for (const int threads : thread_counts(all)) {
      teams_.push_back(std::make_unique<Team>(threads));
      had += teams_.back()->num_threads() - 1;
    }
    if (had == started_for(all)) break;
    while (started_for(all) > had) --all;
  }
  report_threads(all, wanted);
}

void HostProbe::describe_host() {
  result_.cpu = topology_.cpu;
  result_.vector_target = kernels::cpu::arithmetic_target();
  result_.threads = all_threads().num_threads();
  result_.memory = topology_.memory;
  result_.notes = topology_.notes;
}

void HostProbe::measure_cores() {
  report("clock", 0.02);
  result_.clock = measure_clock(effort_);
  for (const Arithmetic arithmetic : kernels::cpu::kArithmetics) {
    report("arithmetic peaks", 0.03);
    const auto [name, stored, how] = kernels::cpu::describe(arithmetic);
    PeakMeasurement peak{std::string(name), stored, std::string(how), {}};
    for (const auto& team : teams_) peak.rate.push_back(measure_arithmetic(*team, arithmetic, effort_));
    result_.peaks.push_back(std::move(peak));
  }
  report("matmul kernels", 0.05);
  result_.matmuls = measure_matmuls(all_threads(), kernel_memory(topology_.caches), effort_);
  report("fork and join", 0.14);
  for (const auto& team : teams_) result_.fork_join[team->num_threads()] = measure_fork_join(*team, effort_);
}

// Little's law: bytes in flight = rate * latency.
double lines_in_flight(const LevelMeasurement& level) {
  return level.read.front().rate.median * level.latency.median / level.line;
}

LevelMeasurement HostProbe::measure_cache(MemoryProbe& memory, std::size_t index) {
  const CacheLevel& cache = topology_.caches[index];
  const Bytes read_set = bandwidth_working_set(topology_.caches, index);
  const Bytes walk_set = latency_working_set(topology_.caches, index);
  LevelMeasurement level;
  level.name = std::string("L").append(std::to_string(cache.level));
  level.sharing = cache.cpus_sharing > 1 ? Sharing::several_cores : Sharing::one_core;
  level.instances = cache.instances;
  level.size = cache.size;
  level.line = cache.line;
  for (const auto& team : teams_) level.read.push_back(memory.read_cache(read_set, level.sharing, *team));
  level.latency = memory.measure_latency(walk_set, cache.line, Locality::anywhere);
  level.latency_anywhere = level.latency;
  if (index > 0) level.outstanding = lines_in_flight(level);
  if (index + 1 == topology_.caches.size())  // a virtual machine may call it a core's own though hosts share it
    level.retention_time = memory.measure_retention_time(std::min(cache.size / 4.0, kLongestKeptSet));
  return level;
}

// Stops of the latency walk are some lines apart, so that none lies in a line that
// was fetched along with a neighbour.
LevelMeasurement HostProbe::measure_dram(MemoryProbe& memory) {
  LevelMeasurement level;
  level.name = "DRAM";
  level.sharing = Sharing::several_cores;
  level.size = topology_.memory;
  level.line = topology_.caches.back().line;
  for (const auto& team : teams_) level.read.push_back(memory.read_dram(*team));
  const Bytes set = 0.5 * memory.size();
  level.latency = memory.measure_latency(set, 4.0 * level.line, Locality::nearby);
  level.latency_anywhere = memory.measure_latency(set, 2.0 * level.line, Locality::anywhere);
  level.outstanding = lines_in_flight(level);
  level.huge_share = memory.huge_share();
  return level;
}

LevelMeasurement HostProbe::measure_quiet_dram(MemoryProbe& memory) {
  LevelMeasurement quietest;
  for (int round = 0; round < effort_.dram_rounds; ++round) {
    const ForeignLoad load;
    LevelMeasurement level = measure_dram(memory);
    const double share = load.share();
    if (round > 0 && share >= result_.foreign_load_dram) continue;
    result_.foreign_load_dram = share;
    quietest = std::move(level);
    if (share <= kTolerableForeignLoad) break;
  }
  return quietest;
}

void HostProbe::measure_memory() {
  report("touching memory", 0.15);
  MemoryProbe memory(topology_, PageSize::huge, effort_, all_threads());
  double fraction = 0.2;
  for (std::size_t index = 0; index < topology_.caches.size(); ++index) {
    report("caches", fraction);
    result_.levels.push_back(measure_cache(memory, index));
    fraction += 0.1;
  }
  report("DRAM", fraction);
  result_.levels.push_back(measure_quiet_dram(memory));
  sweep_working_sets(memory);
  find_reach(result_);
}

void HostProbe::sweep_working_sets(MemoryProbe& memory) {
  const Bytes largest = std::min(256 * kMiB, 0.5 * memory.size());
  for (Bytes set = 16 * kKiB; set <= largest; set *= effort_.sweep_growth) {
    report("working sets", 0.6 + 0.2 * (set / largest));
    const Seconds latency = memory.measure_latency(set, topology_.caches.back().line, Locality::anywhere).median;
    for (const auto& team : teams_) {
      const int threads = team->num_threads();
      if ((threads > 1 && team != teams_.back()) || set * threads > memory.size()) continue;
      result_.sweep.push_back({set, threads, memory.read_own_set(set, *team), threads == 1 ? latency : Seconds()});
    }
  }
}

void HostProbe::measure_small_pages() {
  report("DRAM on 4 KB pages", 0.85);
  MemoryProbe memory(topology_, PageSize::small, effort_, all_threads());
  result_.dram_small_pages = measure_dram(memory);
}

}  // namespace

HostMeasurements probe_host(const ProbeOptions& options) { return HostProbe(options).run(); }

}  // namespace dculab::engine

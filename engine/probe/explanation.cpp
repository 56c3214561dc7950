#include "engine/probe/explanation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dculab::engine {
namespace {

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

void explain_methods(HostMeasurements& host) {
  host.how["clock"] = "chain of register additions, one per cycle, CPU time of the thread, median of runs";
  host.how["cache bandwidth"] =
      "vector loads (" + host.vector_target +
      ") with four sums, over half of L1 or the geometric mean of a cache and the one above it; fastest of 12 stream "
      "shapes, each thread's bytes per CPU time of its own, summed; a shared cache is read by all threads from one "
      "set, each from "
      "another place on";
  host.how["dram bandwidth"] =
      "the same loads, 256 MiB per run, round and round through at least 1 GiB and four times all caches, if that much "
      "memory is free; threads take 8 MiB pieces, whoever is ready; fastest of 20 stream shapes, median of runs";
  host.how["latency"] =
      "pointer chase over one random cycle, CPU time of the thread, median of runs; caches: one stop per line of half "
      "of "
      "L1 or at most twice the cache above; DRAM: every fourth line of half the memory, 2 MiB after 2 MiB so that "
      "address translation hits";
  host.how["latency anywhere"] = "DRAM: every second line, all over half the memory, page walks included";
  host.how["outstanding"] = "Little's law: bandwidth of one thread * latency / line";
  host.how["kept_for"] =
      "one thread reads a quarter of the cache, 8 MiB at most, waits 0.25 to 64 ms and reads it again: the wait after "
      "which that pass has slowed by 1 - 1/e of what it does in the end; median of runs";
  host.how["peaks"] = "twelve independent sums, each thread's FLOP per CPU time of its own, summed";
  host.how["matmuls"] =
      "the engine's kernel on matrices of 2048 in-features (short ones: of 512) that fill half of L2, each thread's "
      "FLOP per CPU time of its own, summed; highest of runs in turn with all other kernels";
  host.how["matmul weights read"] =
      "the same with copy after copy of 8192 x 2048 weights (short ones: of 8192 x 512), shared out to the threads, "
      "from memory, four times what the caches hold; share of DRAM's bandwidth";
  host.how["fork_join"] = "empty parallel loop, one task per thread, threads awake, shortest of runs";
  host.how["exchanges"] =
      "processes of one thread each on CPUs of their own, through memory that they share: a meeting, and all-reduces "
      "of "
      "1 KiB to 16 MiB; fastest of runs, peer_link that of the fastest size";
  host.how["foreign_load"] = "busy time in /proc/stat, steal included, less the CPU time of this process";
}

std::string load_text(const HostMeasurements& host) {
  return "other processes used " + percent(host.foreign_load) + " of the CPUs during the probe, " +
         percent(host.foreign_load_dram) + " while DRAM was read";
}

void note_foreign_load(HostMeasurements& host) {
  const std::string warning = busy_warning(host);
  host.notes.push_back(warning.empty() ? load_text(host) : "warning: " + warning);
}

void note_pages(HostMeasurements& host) {
  const double share = host.levels.back().huge_share;
  std::string text = percent(share) + " of the memory lay on 2 MB pages";
  if (share < 0.9) text += ": latency and DRAM bandwidth include page walks; is transparent_hugepage set to never?";
  host.notes.push_back(text);
}

void note_shared_cache(HostMeasurements& host) {
  for (const LevelMeasurement& level : host.levels) {
    if (level.reach.value() <= 0 || level.sharing == Sharing::one_core) continue;
    char text[200];
    std::snprintf(
        text, sizeof text,
        "%s is shared, in a virtual machine also with other tenants: of its %.0f MiB, one thread reads sets of "
        "up to %.1f MiB mostly from it",
        level.name.c_str(), level.size / kMiB, level.reach / kMiB);
    host.notes.push_back(text);
    if (level.retention_time <= Seconds{}) continue;
    std::snprintf(text, sizeof text, "%s keeps what nobody reads for %.1f ms, then a third of it is left",
                  level.name.c_str(), 1e3 * level.retention_time.value());
    host.notes.push_back(text);
  }
}

}  // namespace

std::string busy_warning(const HostMeasurements& host) {
  if (std::max(host.foreign_load, host.foreign_load_dram) <= kTolerableForeignLoad) return "";
  return load_text(host) + ": the figures are too low; repeat on a quiet machine";
}

void find_reach(HostMeasurements& host) {
  if (host.levels.size() < 2) return;
  LevelMeasurement& cache = host.levels[host.levels.size() - 2];
  const auto rate = [](const LevelMeasurement& level) { return level.read.front().rate.median.value(); };
  const double middle = std::sqrt(rate(cache) * rate(host.levels.back()));
  for (const SweepPoint& point : host.sweep) {
    if (point.threads == 1 && point.read.value() >= middle) cache.reach = std::max(cache.reach, point.working_set);
  }
}

void explain(HostMeasurements& host) {
  explain_methods(host);
  note_foreign_load(host);
  note_pages(host);
  note_shared_cache(host);
}

}  // namespace dculab::engine

#include "study/measure/host_machine.hpp"

#include <algorithm>

#include "config/machine_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "lower/shared_memory/geometry.hpp"

namespace dculab::study {
namespace {

using sim::Evidence;

constexpr double kStepShare = 0.95;  // of what a kernel reaches alone

[[nodiscard]] std::string explain(const engine::HostMeasurements& host, const std::string& quantity) {
  const auto found = host.how.find(quantity);
  return found == host.how.end() ? "dculab probe" : "dculab probe: " + found->second;
}

// The best rate any number of threads reached: the peak that no prediction may beat.
template <class Rates>
[[nodiscard]] auto best(const Rates& rates) {
  auto highest = rates.front().rate.highest;
  for (const auto& each : rates) highest = std::max(highest, each.rate.highest);
  return highest;
}

// A virtual machine has only a part of a cache that its host shares out, whatever sysfs says. What it has lies between
// the largest set that was read mostly from there and the next of the sweep. If that one is as large as sysfs says, or
// no larger set was read, the cache may be whole.
[[nodiscard]] bool has_only_a_part(const engine::HostMeasurements& host, const engine::LevelMeasurement& measured) {
  return measured.reach > Bytes{} && std::ranges::any_of(host.sweep, [&](const engine::SweepPoint& point) {
           return point.threads == 1 && point.working_set > measured.reach && point.working_set < measured.size;
         });
}

// No level answers before the one above it, which is asked first; measured so, something else ran meanwhile.
[[nodiscard]] bool answers_before(const engine::LevelMeasurement& measured, const sim::Machine& levels_above) {
  return !levels_above.memory.empty() && measured.latency.median < levels_above.memory.back().latency;
}

void add_level(sim::Machine& machine, const engine::HostMeasurements& host, const engine::LevelMeasurement& measured) {
  const bool private_to_core = measured.sharing == engine::Sharing::one_core;
  const bool dram = measured.name == "DRAM";
  sim::MemoryLevel level;
  level.name = measured.name;
  level.scope = private_to_core ? sim::Scope::compute_unit : sim::Scope::device;
  const bool part = has_only_a_part(host, measured);
  level.size = part ? measured.reach : measured.size;
  level.line = measured.line;
  level.bandwidth = best(measured.read);
  const bool disturbed = answers_before(measured, machine);
  level.latency = disturbed ? machine.memory.back().latency : measured.latency.median;
  level.outstanding = measured.outstanding;
  level.retention_time = measured.retention_time;
  level.bandwidth_per_unit = measured.read.front().rate.highest;
  const std::string path = "memory." + measured.name + ".";
  const std::string bandwidth_source = explain(host, dram ? "dram bandwidth" : "cache bandwidth");
  config::cite(machine, path + "size", Evidence::measured,
               dram   ? "/proc/meminfo"
               : part ? "dculab probe: the largest set that one thread reads mostly from here; sysfs says " +
                            config::short_text(measured.size) + ", shared with other tenants"
                      : "sysfs cache topology");
  config::cite(machine, path + "line", Evidence::measured, dram ? "line of the last cache" : "sysfs cache topology");
  config::cite(machine, path + "bandwidth", Evidence::measured, bandwidth_source);
  config::cite(machine, path + "latency", disturbed ? Evidence::assumed : Evidence::measured,
               disturbed ? "that of the level above: measured shorter, " + config::short_text(measured.latency.median) +
                               ", on a busy machine; probe again"
                         : explain(host, "latency"));
  config::cite(machine, path + "outstanding", Evidence::measured, explain(host, "outstanding"));
  config::cite(machine, path + "bandwidth_per_unit", Evidence::measured, bandwidth_source + "; one thread");
  if (level.retention_time > Seconds{})
    config::cite(machine, path + "kept_for", Evidence::measured, explain(host, "kept_for"));
  machine.memory.push_back(level);
}

[[nodiscard]] FlopsPerSecond peak_of(const engine::HostMeasurements& host, std::string_view arithmetic) {
  const auto found = std::find_if(host.peaks.begin(), host.peaks.end(),
                                  [&](const engine::PeakMeasurement& peak) { return peak.name == arithmetic; });
  if (found == host.peaks.end()) throw InputError("the probe has no rate of " + std::string(arithmetic));
  return best(found->rate);
}

// The engine widens F16 weights to F32 and multiplies there, so F32's rate is the peak of both. BF16 is what products
// with BF16 activations multiply in.
void add_peaks(sim::Machine& machine, const engine::HostMeasurements& host) {
  const FlopsPerSecond f32 = peak_of(host, "f32_fma");
  for (const Dtype dtype : {Dtype::f32, Dtype::f16}) {
    machine.peaks[dtype] = {f32, std::nullopt};
    config::cite(machine, "peaks." + std::string(name(dtype)) + ".vector",
                 dtype == Dtype::f32 ? Evidence::measured : Evidence::assumed,
                 dtype == Dtype::f32 ? explain(host, "peaks") : "F32's rate: the engine widens and multiplies in F32");
  }
  for (const auto& [dtype, arithmetic] : {std::pair{Dtype::bf16, "bf16_dot"}, std::pair{Dtype::int8, "byte_dot"}}) {
    machine.peaks[dtype] = {peak_of(host, arithmetic), std::nullopt};
    config::cite(machine, "peaks." + std::string(name(dtype)) + ".vector", Evidence::measured, explain(host, "peaks"));
  }
}

[[nodiscard]] bool is_short(const engine::MatmulMeasurement& measured) {
  if (measured.in_features != sim::kLongRow && measured.in_features != sim::kShortRow)
    throw std::logic_error("the probe measured rows of a length that no machine file holds");
  return measured.in_features == sim::kShortRow;
}

[[nodiscard]] sim::MatmulKernel kernel_of(const engine::MatmulMeasurement& measured) {
  return {measured.weights, measured.activations};
}

// "short_matmul_rates.int4_exact.rows_8"
[[nodiscard]] std::string key_of(const char* section, const engine::MatmulMeasurement& measured) {
  return (is_short(measured) ? "short_" : "") + std::string(section) + "." + name(kernel_of(measured)) + ".rows_" +
         std::to_string(measured.rows);
}

// Of the bandwidth, raised where a kernel went beyond it.
void add_matmul_dram_shares(sim::Machine& machine, const engine::HostMeasurements& host) {
  BytesPerSecond& peak = machine.memory.back().bandwidth;
  for (const engine::MatmulMeasurement& measured : host.matmuls) peak = std::max(peak, measured.weights_read.highest);
  for (const engine::MatmulMeasurement& measured : host.matmuls) {
    auto& shares = is_short(measured) ? machine.short_matmul_dram_shares : machine.matmul_dram_shares;
    shares[kernel_of(measured)][measured.rows] = measured.weights_read.highest / peak;
    config::cite(machine, key_of("matmul_dram_shares", measured), Evidence::measured,
                 explain(host, "matmul weights read"));
  }
}

[[nodiscard]] bool multiplies_in(ActivationMode activations, Dtype dtype) {
  switch (activations) {
    case ActivationMode::exact:
      return dtype == Dtype::f32 || dtype == Dtype::f16;
    case ActivationMode::int8:
      return dtype == Dtype::int8;
    case ActivationMode::bf16:
      return dtype == Dtype::bf16;
    case ActivationMode::fp8:
      return dtype == Dtype::fp8_e4m3;
  }
  return false;
}

// What a kernel reached must not lie above the peak that its measurements are held against.
void add_matmul_rates(sim::Machine& machine, const engine::HostMeasurements& host) {
  for (const engine::MatmulMeasurement& measured : host.matmuls) {
    const sim::MatmulKernel kernel = kernel_of(measured);
    auto& rates = is_short(measured) ? machine.short_matmul_rates : machine.matmul_rates;
    rates[kernel][measured.rows] = measured.rate.highest;
    config::cite(machine, key_of("matmul_rates", measured), Evidence::measured, explain(host, "matmuls"));
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::int8})
      if (multiplies_in(kernel.activations, dtype))
        machine.peaks[dtype].vector = std::max(machine.peaks[dtype].vector, measured.rate.highest);
  }
  add_matmul_dram_shares(machine, host);
  machine.stack.reached.matmul_compute = machine.sustained.dram_bandwidth = kStepShare;
  config::cite(machine, "stack.reached.matmul_compute", Evidence::assumed,
               "of matmul_rates: in a step other kernels take turns");
  config::cite(machine, "sustained.dram_bandwidth", Evidence::assumed,
               "of matmul_dram_shares and of what reading reaches: in a step other kernels take turns");
}

// Of a large all-reduce: the rate at which a rank gets through the slots, besides the meetings.
[[nodiscard]] BytesPerSecond slot_rate(const engine::ExchangeMeasurement& measured, Seconds meeting) {
  const Seconds time = measured.time.lowest;
  const Seconds meetings = lower::shared_memory::meetings(measured.bytes) * meeting;
  return measured.ranks * measured.bytes / std::max(time - meetings, 0.1 * time);
}

// The law of lower/shared_memory, of the most processes that were measured: in their fastest runs, for who else runs on
// the machine only ever makes processes wait for each other.
void add_links(sim::Machine& machine, const engine::HostMeasurements& host) {
  if (host.exchanges.empty()) return;
  const int most = host.exchanges.back().ranks;
  std::vector<engine::ExchangeMeasurement> sums;
  Seconds meeting;
  for (const engine::ExchangeMeasurement& each : host.exchanges) {
    if (each.ranks != most) continue;
    if (each.kind == engine::ExchangeKind::meeting) meeting = each.time.lowest;
    if (each.kind == engine::ExchangeKind::all_reduce) sums.push_back(each);
  }
  constexpr Seconds kLeastStart(1e-9);
  constexpr Bytes kLarge = 64 * kKiB;  // where bytes take more than the meeting
  std::vector<double> rates;
  BytesPerSecond highest;
  for (const engine::ExchangeMeasurement& each : sums) {
    if (each.bytes < kLarge) continue;
    const BytesPerSecond rate = slot_rate(each, meeting);
    rates.push_back(rate.value());
    highest = std::max(highest, rate);
  }
  std::ranges::sort(rates);
  machine.peers = most - 1;
  machine.peer_link = highest;
  machine.peer_latency = meeting;
  const engine::ExchangeMeasurement& least = sums.front();
  const Seconds reading = least.ranks * least.bytes / BytesPerSecond(rates[rates.size() / 2]);
  machine.collective_start = std::max(kLeastStart, least.time.lowest - meeting - reading);
  machine.sustained.peer_link = std::min(1.0, rates[rates.size() / 2] / highest.value());
  for (const char* key : {"peer_link", "peer_latency", "collective_start", "sustained.peer_link"})
    config::cite(machine, key, Evidence::measured, explain(host, "exchanges"));
  config::cite(machine, "peers", Evidence::measured, "processes beside the first that the probe ran");
}

}  // namespace

sim::Machine to_machine(const engine::HostMeasurements& host) {
  sim::Machine machine;
  machine.name = "host";
  machine.description = host.cpu + ", " + std::to_string(host.threads) + " threads, " + host.vector_target + ", " +
                        config::short_text(host.memory) + " memory; foreign load while probing " +
                        std::to_string(static_cast<int>(100 * host.foreign_load + 0.5)) + " %";
  machine.kind = lower::DeviceKind::cpu;
  machine.compute_units = host.threads;
  machine.clock = host.clock;
  config::cite(machine, "compute_units", Evidence::measured, "threads that the probe ran");
  config::cite(machine, "clock", Evidence::measured, explain(host, "clock"));
  add_peaks(machine, host);
  for (const engine::LevelMeasurement& level : host.levels) add_level(machine, host, level);
  add_matmul_rates(machine, host);
  add_links(machine, host);
  machine.overheads.kernel_launch = host.fork_join.rbegin()->second;
  config::cite(machine, "overheads.kernel_launch", Evidence::measured, explain(host, "fork_join"));
  return machine;
}

}  // namespace dculab::study

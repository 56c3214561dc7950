#include "study/measure/gpu_machine.hpp"

#include <algorithm>

#include "config/machine_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "sim/hardware/design.hpp"

namespace dculab::study {
namespace {

using sim::Evidence;

void require_alike(const engine::GpuMeasurements& gpu, const sim::Machine& like) {
  if (like.kind != lower::DeviceKind::gpu)
    throw InputError("--like", like.name + " is a CPU; name the shipped GPU that is nearest to " + gpu.device.name);
  if (like.waves.wave_size != gpu.device.wave_size)
    throw InputError("--like", like.name + " has waves of " + std::to_string(like.waves.wave_size) + ", but " +
                                   gpu.device.name + " of " + std::to_string(gpu.device.wave_size) +
                                   "; name the shipped GPU that is nearest to it");
}

// A peak that the device went beyond is no share of what the shipped machine's figures make.
void set_measured(sim::Machine& machine, const std::string& key, const std::string& how) {
  config::cite(machine, key, Evidence::measured, how);
  machine.derivations.erase(key);
}

// What follows the units of `like` is that of as many as the device has.
void set_units(const engine::GpuMeasurements& gpu, sim::Machine& machine) {
  const int before = machine.compute_units;
  machine.compute_units = gpu.device.compute_units;
  sim::follow(machine, "compute_units", before);
  machine.stated_units = 0;  // a machine of its own
  config::cite(machine, "compute_units", Evidence::measured, "what the driver of " + gpu.device.name + " reports");
}

void set_memory(const engine::GpuMeasurements& gpu, sim::Machine& machine) {
  sim::MemoryLevel& dram = machine.memory.back();
  const std::string path = "memory." + dram.name + ".";
  dram.size = gpu.device.memory;
  config::cite(machine, path + "size", Evidence::measured, "what the driver of " + gpu.device.name + " reports");
  const engine::CopyRate& copy = gpu.copy.back();
  const BytesPerSecond fastest = std::max(gpu.copy_bandwidth(), gpu.read);
  const std::string how = "dculab probe: copy of " + config::short_text(copy.size) + " " +
                          config::short_text(copy.rate) + " (read and written), one-row product over " +
                          config::short_text(gpu.read_size) + " of weights " + config::short_text(gpu.read) +
                          "; the higher";
  if (fastest > dram.bandwidth) {
    set_measured(machine, path + "bandwidth",
                 how + ", above the " + config::short_text(dram.bandwidth) + " of the machine it was started from");
    dram.bandwidth = fastest;
  }
  machine.sustained.dram_bandwidth = fastest / dram.bandwidth;
  config::cite(machine, "sustained.dram_bandwidth", Evidence::measured,
               how + ", of " + config::short_text(dram.bandwidth));
}

// The peak that products in `dtype` are held against, raised to what was reached. Returns the share that was reached.
double reached_share(sim::Machine& machine, Dtype dtype, FlopsPerSecond rate, const std::string& how) {
  const auto found = machine.peaks.find(dtype);
  if (found == machine.peaks.end()) return 0;
  sim::Peak& peak = found->second;
  FlopsPerSecond& highest = peak.matrix && *peak.matrix > peak.vector ? *peak.matrix : peak.vector;
  if (rate > highest) {
    set_measured(machine, "peaks." + std::string(name(dtype)) + (&highest == &peak.vector ? ".vector" : ".matrix"),
                 how + ", above the " + config::short_text(highest) + " of the machine it was started from");
    highest = rate;
  }
  return rate / highest;
}

void set_arithmetic(const engine::GpuMeasurements& gpu, sim::Machine& machine) {
  const std::string n = std::to_string(gpu.product.n);
  const auto how = [&](const char* dtype, FlopsPerSecond rate) {
    return "dculab probe: product of " + n + " x " + n + " matrices in " + dtype + ", " + config::short_text(rate);
  };
  (void)reached_share(machine, Dtype::f32, gpu.product.f32, how("f32", gpu.product.f32));
  const std::string f16 = how("f16", gpu.product.f16);
  const double share = reached_share(machine, Dtype::f16, gpu.product.f16, f16);
  if (share <= 0) return;
  machine.stack.reached.matmul_compute = share;
  config::cite(machine, "stack.reached.matmul_compute", Evidence::measured, f16 + " of the peak");
}

}  // namespace

sim::Machine to_machine(const engine::GpuMeasurements& gpu, const sim::Machine& like) {
  require_alike(gpu, like);
  sim::Machine machine = like;
  machine.calibration.reset();
  machine.name = like.name + "-probed";
  machine.description = gpu.device.name + ", " + std::to_string(gpu.device.compute_units) +
                        " compute units, probed; what cannot be measured is that of " + like.name + " (" +
                        std::to_string(like.compute_units) + " compute units)";
  set_units(gpu, machine);
  set_memory(gpu, machine);
  set_arithmetic(gpu, machine);
  machine.overheads.kernel_launch = gpu.launch;
  config::cite(machine, "overheads.kernel_launch", Evidence::measured,
               "dculab probe: per RMSNorm of one token, many queued, between the device's events; the host spends " +
                   config::short_text(gpu.host_launch) + " on each");
  machine.host_link = std::min(gpu.upload, gpu.download);
  config::cite(machine, "host_link", Evidence::measured,
               "dculab probe: pageable memory, upload " + config::short_text(gpu.upload) + ", download " +
                   config::short_text(gpu.download) + "; the slower");
  return machine;
}

}  // namespace dculab::study

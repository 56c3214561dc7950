// A probed GPU as a machine: what is replaced, what is carried over, and what is refused.
#include "study/measure/gpu_machine.hpp"

#include "config/machine_file.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

sim::Machine shipped(const std::string& name) {
  return config::read_machine_file(DCULAB_SOURCE_DIR "/hwmodels/" + name + ".yaml");
}

// Below z100's peaks: 1024 GB/s, 21.6 and 10.8 TFLOP/s.
engine::GpuMeasurements slower_than_z100() {
  engine::GpuMeasurements gpu;
  gpu.device = {"Z100", 64, 60, Bytes(16e9), Bytes(15e9)};
  gpu.copy = {{Bytes(1e6), BytesPerSecond(2000e9)}, {Bytes(1e9), BytesPerSecond(700e9)}};
  gpu.read_size = Bytes(5e8);
  gpu.read = BytesPerSecond(768e9);
  gpu.launch = Seconds(4e-6);
  gpu.host_launch = Seconds(3e-6);
  gpu.upload = BytesPerSecond(6e9);
  gpu.download = BytesPerSecond(5e9);
  gpu.product = {4096, FlopsPerSecond(10.8e12), FlopsPerSecond(6e12)};
  return gpu;
}

TEST_CASE("what was measured replaces the shipped machine's figures, with how") {
  const sim::Machine z100 = shipped("z100");
  const sim::Machine machine = to_machine(slower_than_z100(), z100);
  CHECK(machine.compute_units == 60);
  CHECK(machine.dram().size == Bytes(16e9));
  CHECK(machine.dram().bandwidth == z100.dram().bandwidth);
  CHECK(machine.sustained.dram_bandwidth == Approx(0.75));  // the read beyond all caches, of 1024 GB/s
  CHECK(machine.peaks.at(Dtype::f16).vector.value() == Approx(21.6e12 * 60 / 64));  // the device has fewer units
  CHECK(machine.stack.reached.matmul_compute == Approx(10.8 / 20.25));
  CHECK(machine.overheads.kernel_launch == Seconds(4e-6));
  CHECK(*machine.host_link == BytesPerSecond(5e9));
  for (const char* key : {"compute_units", "memory.DRAM.size", "sustained.dram_bandwidth",
                          "reached.dculab.matmul_compute", "overheads.kernel_launch", "host_link"})
    CHECK(machine.sources.at(key).rfind("measured: ", 0) == 0);
  for (const char* key :
       {"clock", "memory.L2.latency", "memory.DRAM.bandwidth", "waves.vgprs_per_lane", "peaks.f16.vector"})
    CHECK(machine.sources.at(key) == z100.sources.at(key));
}

TEST_CASE("a rate above the shipped machine's peak becomes the peak") {
  engine::GpuMeasurements gpu = slower_than_z100();
  gpu.copy.back().rate = BytesPerSecond(1200e9);
  gpu.product.f32 = FlopsPerSecond(12e12);
  const sim::Machine machine = to_machine(gpu, shipped("z100"));
  CHECK(machine.dram().bandwidth == BytesPerSecond(1200e9));
  CHECK(machine.sustained.dram_bandwidth == 1);
  CHECK(machine.peaks.at(Dtype::f32).vector == FlopsPerSecond(12e12));
  CHECK(machine.sources.at("peaks.f32.vector").rfind("measured: ", 0) == 0);
  // What was measured is no share of the shipped card's figures any more.
  for (const char* key : {"peaks.f32.vector", "memory.DRAM.bandwidth"}) CHECK_FALSE(machine.derivations.contains(key));
  CHECK(machine.derivations.contains("peaks.f16.vector"));
  CHECK_NOTHROW(config::read_machine("probed.yaml", config::machine_yaml(machine)));
}

TEST_CASE("the written machine is a machine file") {
  const sim::Machine machine = to_machine(slower_than_z100(), shipped("z100"));
  const sim::Machine read = config::read_machine("probed.yaml", config::machine_yaml(machine));
  CHECK(read.name == "z100-probed");
  CHECK(read.sources == machine.sources);
  CHECK(read.derivations == machine.derivations);
  CHECK(read.sustained.dram_bandwidth == machine.sustained.dram_bandwidth);
  CHECK(read.stack.reached.matmul_compute == machine.stack.reached.matmul_compute);
}

TEST_CASE("a machine that cannot be the device is refused") {
  sim::Machine cpu = shipped("z100");
  cpu.kind = lower::DeviceKind::cpu;
  CHECK_THROWS_AS(to_machine(slower_than_z100(), cpu), InputError);
  CHECK_THROWS_WITH(to_machine(slower_than_z100(), shipped("h100-sxm")), ContainsSubstring("waves of 32"));
}

}  // namespace
}  // namespace dculab::study

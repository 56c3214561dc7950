// To which assumed figures an answer is sensitive, where the answer is known by hand.
#include "sim/calibration/input_sensitivity.hpp"

#include <algorithm>

#include "sim/calibration/figure_scale.hpp"
#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// A time that is bytes / bandwidth of DRAM plus one latency of the L2.
std::vector<Seconds> stream(const Machine& machine) {
  return {Bytes(1e9) / machine.dram().bandwidth + machine.memory[1].latency};
}

Machine with_assumed(std::vector<std::string> keys) {
  Machine machine = mi50_like();
  machine.assumed = std::move(keys);
  for (const std::string& key : machine.assumed) machine.sources[key] = "assumed: a guess";
  return machine;
}

TEST_CASE("a time changes with an assumed bandwidth by 1 / 0.9, and not with what it does not use") {
  const Machine machine = with_assumed({"memory.L1.latency", "memory.L2.latency", "memory.DRAM.bandwidth"});
  const std::vector<InputSensitivity> found = input_sensitivities(machine, stream);
  REQUIRE(found.size() >= 3);
  CHECK(found.front().key == "memory.DRAM.bandwidth");
  CHECK_THAT(found.front().change, WithinRel(1 / 0.9 - 1, 0.001));
  for (const InputSensitivity& each : found) {
    INFO(each.key);
    if (each.key == "memory.L2.latency") CHECK((each.change > 0 && each.change < kLeastSensitivity));
    if (each.key == "memory.L1.latency") CHECK(each.change == 0);
  }
}

TEST_CASE("what is measured is not told, and what the file leaves out is a prior") {
  Machine machine = with_assumed({"memory.L2.latency"});
  const auto is_there = [&machine](const char* key) {
    const std::vector<std::string> keys = assumed_keys(machine);
    return std::count(keys.begin(), keys.end(), key) == 1;
  };
  CHECK(is_there("memory.L2.latency"));
  CHECK(is_there("stack.reached.matmul_compute"));
  CHECK_FALSE(is_there("memory.DRAM.bandwidth"));
  machine.stack.sources["reached.matmul_compute"] = "measured: here";
  CHECK_FALSE(is_there("stack.reached.matmul_compute"));
  machine.stack.sources["reached.matmul_compute"] = "inferred: from another card's product";
  CHECK(is_there("stack.reached.matmul_compute"));
  machine.stack.sources["reached.matmul_compute"] = "assumed: as another card";
  machine.sources["reached.all.matmul_compute"] = "assumed: as another card";
  machine.assumed.push_back("reached.all.matmul_compute");
  CHECK(is_there("stack.reached.matmul_compute"));
  CHECK_FALSE(is_there("reached.all.matmul_compute"));
}

TEST_CASE("the mean over several times decides") {
  const Machine machine = with_assumed({"memory.DRAM.bandwidth"});
  const auto one_of_two = [](const Machine& candidate) {
    return std::vector<Seconds>{Bytes(1e9) / candidate.dram().bandwidth, Seconds(1)};
  };
  CHECK_THAT(input_sensitivities(machine, one_of_two).front().change, WithinRel((1 / 0.9 - 1) / 2, 0.001));
}

TEST_CASE("figures scale under their keys; counts by one at least, lines by a power of two, shares up to one") {
  Machine machine = mi50_like();
  machine.peers = 3;
  REQUIRE(scale_figure(machine, "peaks.f16.vector", 1.1));
  CHECK_THAT(machine.peaks.at(Dtype::f16).vector.value(), WithinRel(1.1 * 26.8e12, 1e-9));
  REQUIRE(scale_figure(machine, "memory.DRAM.line", 1.1));
  CHECK(machine.dram().line == Bytes(128));
  REQUIRE(scale_figure(machine, "waves.max_waves_per_simd", 0.9));
  CHECK(machine.waves.max_waves_per_simd == 9);
  REQUIRE_FALSE(scale_figure(machine, "peers", 0.9));  // six of eight devices are another server
  machine.sustained.dram_bandwidth = 0.95;
  REQUIRE(scale_figure(machine, "sustained.dram_bandwidth", 1.1));
  CHECK(machine.sustained.dram_bandwidth == 1);
  REQUIRE(scale_figure(machine, "stack.reached.undisturbed", 0.9));
  CHECK_THAT(machine.stack.reached.interference_free, WithinRel(0.9, 1e-12));
  REQUIRE(scale_figure(machine, "sustained.refill_bandwidth", 0.9));
  CHECK_THAT(machine.sustained.cold_miss_bandwidth, WithinRel(0.45, 1e-12));
  for (const char* key : {"peaks.f16.matrix", "peaks.fp8_e4m3.vector", "memory.L3.size", "waves.wave_size", "peer_link",
                          "memory.L1.ways", "name", ""}) {
    INFO(key);
    CHECK_FALSE(scale_figure(machine, key, 1.1));
  }
}

}  // namespace
}  // namespace dculab::sim::test

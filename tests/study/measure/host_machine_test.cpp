// A machine file of this host: what of a cache a virtual machine has.
#include "study/measure/host_machine.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

namespace dculab::study::test {
namespace {

// Of a sweep like the probe's: from 1 to 195 MiB.
Bytes set_after(int steps) { return kMiB * std::pow(1.5, steps); }

engine::HostMeasurements host_with(Bytes size, Bytes reach) {
  const auto reads = [](double rate) {
    const BytesPerSecond same(rate);
    return std::vector<engine::ReadRate>{{1, {same, same, same}, ""}};
  };
  engine::HostMeasurements host;
  host.clock = Hertz(3e9);
  for (const char* peak : {"f32_fma", "bf16_dot", "byte_dot"}) {
    const FlopsPerSecond same(1e12);
    host.peaks.push_back({peak, Dtype::f32, "", {{1, {same, same, same}, ""}}});
  }
  host.fork_join[1] = Seconds(1e-6);
  for (const char* name : {"L3", "DRAM"}) {
    engine::LevelMeasurement& level = host.levels.emplace_back();
    level.name = name;
    level.sharing = engine::Sharing::several_cores;
    level.size = 16 * kGiB;
    level.line = Bytes(64);
    level.read = reads(2e10);
    level.latency.median = Seconds(1e-7);
  }
  host.levels.front().size = size;
  host.levels.front().reach = reach;
  for (int steps = 0; steps <= 13; ++steps) {
    const Bytes set = set_after(steps);
    host.sweep.push_back({set, 1, BytesPerSecond(set <= reach ? 2e10 : 1e10), Seconds(1e-7)});
  }
  return host;
}

TEST_CASE("a cache that a host shares out is as large as what is read mostly from it, and says so") {
  const Bytes reach = set_after(9);  // 38 MiB
  const sim::Machine part = to_machine(host_with(480 * kMiB, reach));
  CHECK(part.memory.front().size == reach);
  CHECK(part.sources.at("memory.L3.size").find("sysfs says 480 MiB") != std::string::npos);
}

TEST_CASE("a cache is as large as its system says where the next set of the sweep is as large, or none was read") {
  const auto size_beside = [](Bytes size, Bytes reach) {
    return to_machine(host_with(size, reach)).memory.front().size;
  };
  const Bytes reach = set_after(8), next = set_after(9);
  CHECK(size_beside(next, reach) == next);
  CHECK(size_beside(next + Bytes(1), reach) == reach);
  CHECK(size_beside(reach, reach) == reach);
  CHECK(size_beside(next, set_after(7)) == set_after(7));
  // The largest of all was read from the cache; none was, or it is not known.
  CHECK(size_beside(480 * kMiB, set_after(13)) == 480 * kMiB);
  CHECK(size_beside(480 * kMiB, Bytes{}) == 480 * kMiB);
  CHECK(to_machine(host_with(next, reach)).sources.at("memory.L3.size") == "measured: sysfs cache topology");
}

TEST_CASE("a level that was measured faster than the one above it takes its latency, and says so") {
  engine::HostMeasurements host = host_with(480 * kMiB, set_after(9));
  host.levels.back().latency.median = Seconds(9e-8);
  const sim::Machine machine = to_machine(host);
  CHECK(machine.dram().latency == machine.memory.front().latency);
  CHECK(sim::problems(machine).empty());
  CHECK_THAT(machine.sources.at("memory.DRAM.latency"), ContainsSubstring("assumed: that of the level above"));
}

}  // namespace
}  // namespace dculab::study::test

// A machine file of this host: what of a cache a virtual machine has.
#include "study/calibrate/host_machine.hpp"

#include "tests/support/catch.hpp"

namespace dculab::study::test {
namespace {

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
  return host;
}

TEST_CASE("a cache that a host shares out is as large as what is read mostly from it, and says so") {
  const sim::Machine part = to_machine(host_with(480 * kMiB, 52 * kMiB));
  CHECK(part.memory.front().size == 52 * kMiB);
  CHECK(part.sources.at("memory.L3.size").find("sysfs says 480 MiB") != std::string::npos);
  // Little less is how a cache's replacement and the sweep's steps look; nothing was found where no set was larger.
  for (const Bytes reach : {20 * kMiB, Bytes{}}) {
    const sim::Machine whole = to_machine(host_with(32 * kMiB, reach));
    CHECK(whole.memory.front().size == 32 * kMiB);
    CHECK(whole.sources.at("memory.L3.size") == "measured: sysfs cache topology");
  }
}

}  // namespace
}  // namespace dculab::study::test

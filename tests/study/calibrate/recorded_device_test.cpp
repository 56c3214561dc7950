// What is said of traces that were recorded on something else than the machine that is asked about.
#include "study/calibrate/recorded_device.hpp"

#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

// The warnings for traces of a device each, on a shipped machine; CPUs have threads.
std::vector<std::string> warnings(const std::string& machine, const std::vector<std::string>& devices,
                                  int threads = 0) {
  std::vector<MeasuredTrace> traces;
  for (const std::string& device : devices) {
    traces.emplace_back().trace.header.device = device;
    traces.back().trace.header.threads = threads;
  }
  return other_devices(traces, resolve_machine(machine));
}

TEST_CASE("traces of this machine, or of a device that nobody knows, are compared without a word") {
  CHECK(warnings("h200", {"NVIDIA H200", "", "0", "NVIDIA H200"}).empty());
  CHECK(warnings("mi210", {"gfx90a:sramecc+:xnack-, AMD Instinct MI210"}).empty());
  CHECK(warnings("mi50", {"gfx906:sramecc+:xnack-, AMD Radeon Graphics"}).empty());
  CHECK(warnings("k100-ai", {"gfx928:sramecc+, K100_AI", "BW"}).empty());
  CHECK(warnings("x86-server", {"CPU avx512, Some Processor"}, 8).empty());
}

TEST_CASE("traces of another device are warned of, once for each") {
  const auto found = warnings("mi210", {"NVIDIA H200", "NVIDIA A100-SXM4-80GB (0)", "NVIDIA H200"});
  REQUIRE(found.size() == 2);
  CHECK(found[0].starts_with("recorded on NVIDIA H200, which is not mi210: "));
  CHECK(found[1].starts_with("recorded on NVIDIA A100-SXM4-80GB (0), "));
  CHECK(warnings("mi250-gcd", {"gfx90a, AMD Instinct MI210"}).size() == 1);
  CHECK(warnings("k100", {"gfx928:sramecc+, K100_AI"}).size() == 1);  // by its architecture
  CHECK(warnings("mi210", {"a processor"}, 8).size() == 1);
  CHECK(warnings("x86-server", {"NVIDIA H200"}).size() == 1);
}

TEST_CASE("the times of a host that plays a GPU are those of no GPU") {
  const auto found = warnings("mi50", {"host build, waves of 64"});
  REQUIRE(found.size() == 1);
  CHECK(found[0] == "recorded by a host that plays a GPU (host build, waves of 64): the times say nothing of mi50");
}

}  // namespace
}  // namespace dculab::study

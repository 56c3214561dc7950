// What is said of traces that were recorded on something else than the machine that is asked about.
#include "study/calibrate/recorded_device.hpp"

#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

// Traces of a device each; CPUs have threads.
std::vector<MeasuredTrace> traces_of(const std::vector<std::string>& devices, int threads) {
  std::vector<MeasuredTrace> traces;
  for (const std::string& device : devices) {
    traces.emplace_back().trace.header.device = device;
    traces.back().trace.header.threads = threads;
  }
  return traces;
}

// Of traces on a shipped machine.
std::vector<std::string> warnings(const std::string& machine, const std::vector<std::string>& devices,
                                  int threads = 0) {
  return other_devices(traces_of(devices, threads), resolve_machine(machine));
}

std::string advice(const std::string& machine, const std::vector<std::string>& devices, int threads = 0) {
  return advice_on_devices(traces_of(devices, threads), resolve_machine(machine));
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

TEST_CASE("what to give instead of a machine is the device's own, shipped or probed") {
  CHECK(advice("h200", {"NVIDIA H200", ""}).empty());
  CHECK(advice("mi210", {"NVIDIA H200", "NVIDIA H200"}) ==
        "they were recorded on NVIDIA H200, which is not mi210: give --machine h200, or the file that `dculab probe "
        "--device hip:N|cuda:N --machine-file FILE` writes there");
  CHECK_THAT(advice("mi210", {"NVIDIA A100-SXM4-80GB"}),
             ContainsSubstring("give --machine a100-80gb-sxm, or the file"));
  CHECK_THAT(advice("mi210", {"gfx928:sramecc+, K100_AI"}), ContainsSubstring("give --machine k100-ai, or the file"));
  CHECK_THAT(advice("mi210", {"gfx936, BW"}), ContainsSubstring("give --machine the file that `dculab probe --device"));
  CHECK_THAT(advice("mi210", {""}, 8), ContainsSubstring("recorded on a CPU, which is not mi210: give --machine the "
                                                         "file that `dculab probe --machine-file FILE` writes there"));
  CHECK_THAT(advice("mi210", {"NVIDIA H200", "NVIDIA H100"}),
             ContainsSubstring("NVIDIA H200, which") && ContainsSubstring("; they were recorded on NVIDIA H100"));
}

TEST_CASE("the times of a host that plays a GPU are those of no GPU") {
  const auto found = warnings("mi50", {"host build, waves of 64"});
  REQUIRE(found.size() == 1);
  CHECK(found[0] == "recorded by a host that plays a GPU (host build, waves of 64): the times say nothing of mi50");
  CHECK_THAT(advice("mi50", {"host build, waves of 64"}), ContainsSubstring("plays a GPU (host build, waves of 64)") &&
                                                              ContainsSubstring("bench --device hip:N --trace FILE"));
  CHECK(emulated_device(traces_of({"NVIDIA H200", "host build, waves of 64"}, 0)) == "host build, waves of 64");
  CHECK(emulated_device(traces_of({"NVIDIA H200", ""}, 0)).empty());
}

}  // namespace
}  // namespace dculab::study

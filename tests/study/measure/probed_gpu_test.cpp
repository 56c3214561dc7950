// Which machines of GPUs are made of a probe.
#include "study/measure/probed_gpu.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

constexpr engine::DeviceChoice kEmulatedGpu{.kind = engine::DeviceKind::host_gpu};
constexpr engine::DeviceChoice kRealGpu{.kind = engine::DeviceKind::hip};

TEST_CASE("a GPU's machine starts from a shipped one, and is not made of an emulated GPU") {
  CHECK_THROWS_WITH(probe_gpu({.device = kEmulatedGpu, .like = "z100"}),
                    ContainsSubstring("--like: is what --machine-file starts from"));
  CHECK_THROWS_WITH(probe_gpu({.device = kEmulatedGpu, .wants_machine = true, .like = "z100"}),
                    ContainsSubstring("host-gpu emulates a GPU"));
  CHECK_THROWS_WITH(probe_gpu({.device = kRealGpu, .wants_machine = true, .like = "no-such-gpu"}),
                    ContainsSubstring("no-such-gpu"));
}

TEST_CASE("an emulated GPU is measured, and says that it is emulated", "[once]") {
  const ProbedGpu probed = probe_gpu({.device = kEmulatedGpu, .like = ""});
  CHECK(probed.reality == engine::DeviceReality::emulated);
  CHECK_FALSE(probed.machine);
  CHECK_FALSE(probed.measurements.copy.empty());
  CHECK(probed.measurements.read > BytesPerSecond{});
}

}  // namespace
}  // namespace dculab::study

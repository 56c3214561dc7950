#include "study/measure/nearest_machine.hpp"

#include <string>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

constexpr double kGb = 1e9;

std::string nearest(const char* name, int wave_size, int units, double memory) {
  const auto machine = study::nearest_machine(
      {.name = name, .wave_size = wave_size, .compute_units = units, .memory = Bytes(memory), .free_memory = Bytes()});
  return machine ? machine->name : "";
}

}  // namespace

TEST_CASE("a DCU or AMD GPU is the shipped machine of its name") {
  CHECK(nearest("gfx906:sramecc+:xnack-, Z100", 64, 64, 34.3 * kGb) == "z100");
  CHECK(nearest("gfx906, Z100L", 64, 60, 34.3 * kGb) == "z100l");
  CHECK(nearest("gfx926, K100", 64, 120, 68.7 * kGb) == "k100");
  CHECK(nearest("gfx928:sramecc+, K100_AI", 64, 120, 68.7 * kGb) == "k100-ai");
  CHECK(nearest("gfx936, BW1000", 64, 80, 68.7 * kGb) == "bw1000");
  CHECK(nearest("gfx908:sramecc+:xnack-, AMD Instinct MI100", 64, 120, 34.3 * kGb) == "mi100");
  CHECK(nearest("gfx90a:sramecc+:xnack-, AMD Instinct MI210", 64, 104, 68.7 * kGb) == "mi210");
  CHECK(nearest("gfx90a, AMD Instinct MI250X / MI250", 64, 110, 68.7 * kGb) == "mi250x-gcd");
  CHECK(nearest("gfx90a, AMD Instinct MI250X / MI250", 64, 104, 68.7 * kGb) == "mi250-gcd");
  CHECK(nearest("gfx942:sramecc+:xnack-, AMD Instinct MI300X", 64, 304, 206 * kGb) == "mi300x");
}

TEST_CASE("of cards with one name memory and compute units decide") {
  CHECK(nearest("gfx906, AMD Instinct MI50", 64, 60, 17.2 * kGb) == "mi50");
  CHECK(nearest("gfx906, AMD Instinct MI50", 64, 60, 34.3 * kGb) == "mi50-32gb");
  CHECK(nearest("NVIDIA H100 80GB HBM3", 32, 132, 85 * kGb) == "h100-sxm");
  CHECK(nearest("NVIDIA H100 PCIe", 32, 114, 85 * kGb) == "h100-pcie");
  CHECK(nearest("NVIDIA A100-SXM4-40GB", 32, 108, 42.4 * kGb) == "a100-40gb");
  CHECK(nearest("NVIDIA A100-PCIE-40GB", 32, 108, 42.4 * kGb) == "a100-40gb");
  CHECK(nearest("NVIDIA A100-SXM4-80GB", 32, 108, 85 * kGb) == "a100-80gb-sxm");
  CHECK(nearest("NVIDIA A100 80GB PCIe", 32, 108, 85 * kGb) == "a100-80gb-pcie");
  CHECK(nearest("NVIDIA H200", 32, 132, 150.1 * kGb) == "h200");
}

TEST_CASE("a card of another name is the nearest of its architecture") {
  CHECK(nearest("gfx906:sramecc-, AMD Radeon VII", 64, 60, 17.2 * kGb) == "radeon-pro-vii");
  CHECK(nearest("gfx936, BW150", 64, 80, 68.7 * kGb) == "bw1000");
  CHECK(nearest("gfx942, AMD Instinct MI300A", 64, 228, 137 * kGb) == "mi300x");
}

TEST_CASE("an unknown card, and one with other waves, is none of them") {
  CHECK(nearest("NVIDIA GeForce RTX 4090", 32, 128, 25 * kGb).empty());
  CHECK(nearest("gfx803, Fiji", 64, 64, 4 * kGb).empty());
  CHECK(nearest("gfx906, AMD Instinct MI50", 32, 60, 17.2 * kGb).empty());
  CHECK(nearest("", 64, 60, 17.2 * kGb).empty());
}

TEST_CASE("whoever names a machine gets it, and who has to is told which there are") {
  const kernels::gpu::DeviceInfo unknown{
      .name = "gfx803, Fiji", .wave_size = 64, .compute_units = 64, .memory = Bytes(4e9), .free_memory = Bytes()};
  CHECK(study::machine_like("z100", unknown).name == "z100");
  CHECK_THROWS_WITH(study::machine_like("", unknown),
                    ContainsSubstring("is known to be like gfx803, Fiji; add --like") &&
                        ContainsSubstring("k100-ai, ") && ContainsSubstring("z100"));
}

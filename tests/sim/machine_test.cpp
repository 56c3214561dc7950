// problems() names everything that makes a machine unusable.
#include "sim/hardware/machine.hpp"

#include <algorithm>

#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

bool mentions(const Machine& machine, const std::string& key) {
  const auto found = problems(machine);
  return std::any_of(found.begin(), found.end(), [&](const auto& text) { return text.find(key) != std::string::npos; });
}

TEST_CASE("the machines of the tests are sound") {
  for (const Machine& machine : {mi50_like(), a100_like(), cpu_like()}) CHECK(problems(machine).empty());
}

TEST_CASE("an empty machine has many problems, all told at once") {
  const auto found = problems(Machine{});
  CHECK(found.size() >= 5);
  for (const char* key : {"name", "compute_units", "clock", "peaks.f32", "memory"}) CHECK(mentions(Machine{}, key));
}

TEST_CASE("figures out of range are named by their key") {
  Machine machine = mi50_like();
  machine.sustained.dram_bandwidth = 1.2;
  machine.stack.reached.overlap = 0;
  machine.overheads.host_per_step = Seconds(-1);
  machine.memory[1].bandwidth = {};
  machine.memory[1].latency = Seconds(1e-9);
  machine.memory[2].scope = Scope::compute_unit;
  machine.waves.vgpr_granule = 0;
  machine.peaks[Dtype::f16].matrix = FlopsPerSecond(std::nan(""));
  for (const char* key : {"sustained.dram_bandwidth", "stack.reached.overlap", "overheads.host_per_step",
                          "memory.L2.bandwidth", "memory.L2.latency", "DRAM", "waves.vgpr_granule", "peaks.f16.matrix"})
    CHECK(mentions(machine, key));
}

TEST_CASE("matmul kernels are named by weights and activations") {
  for (const MatmulKernel kernel : {MatmulKernel{Dtype::int4, ActivationMode::int8},
                                    {Dtype::fp8_e4m3, ActivationMode::exact},
                                    {Dtype::f16, ActivationMode::exact}})
    CHECK(parse_matmul_kernel(name(kernel)) == kernel);
  CHECK(name(MatmulKernel{Dtype::int4, ActivationMode::int8}) == "int4_int8");
  for (const char* text : {"", "_", "int4", "int4_", "_int8", "int4_f16", "int5_int8", "float16_exact"})
    CHECK_FALSE(parse_matmul_kernel(text));
  Machine machine = cpu_like();
  machine.matmul_rates[{Dtype::int8, ActivationMode::exact}][8] = FlopsPerSecond(0);
  machine.matmul_rates[{Dtype::int4, ActivationMode::exact}] = {};
  machine.matmul_dram_shares[{Dtype::int8, ActivationMode::exact}][1] = 1.5;
  machine.matmul_dram_shares[{Dtype::f16, ActivationMode::exact}][1] = 0.5;
  machine.short_matmul_rates[{Dtype::f16, ActivationMode::exact}][1] = FlopsPerSecond(1);
  machine.short_matmul_dram_shares[{Dtype::int8, ActivationMode::exact}][1] = 2;
  for (const char* key : {"matmul_rates.int8_exact.rows_8", "matmul_rates.int4_exact is empty",
                          "matmul_dram_shares.int8_exact.rows_1 must lie in (0, 1]",
                          "matmul_dram_shares.f16_exact needs matmul_rates.f16_exact",
                          "short_matmul_rates.f16_exact needs matmul_rates.f16_exact",
                          "short_matmul_dram_shares.int8_exact.rows_1 must lie in (0, 1]"})
    CHECK(mentions(machine, key));
}

TEST_CASE("a CPU needs no waves") {
  Machine machine = cpu_like();
  machine.waves = {};
  machine.waves.vgpr_granule = 0;
  CHECK(problems(machine).empty());
}

}  // namespace
}  // namespace dculab::sim::test

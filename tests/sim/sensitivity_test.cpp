// Which figure flips an answer, where the flip is known by hand.
#include "sim/study/sensitivity.hpp"

#include <algorithm>

#include "sim/calibration/figure_scale.hpp"
#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// Streaming 1 GB, or computing for as long as streaming takes at three quarters of the bandwidth: more than a third
// more bandwidth makes no difference to the choice, less than three quarters of it does.
Question streaming_or_computing(const Machine& base) {
  const Seconds computing = Bytes(1e9) / (base.dram().bandwidth * 0.75);
  return [computing](const Machine& machine) {
    const Seconds streaming = Bytes(1e9) / machine.dram().bandwidth;
    return streaming <= computing ? Answer{"stream", streaming.value()} : Answer{"compute", computing.value()};
  };
}

TEST_CASE("a flip is found where it is, and what changes nothing is left out") {
  Machine machine = mi50_like();
  machine.sources["memory.DRAM.bandwidth"] = "spec: known";
  machine.sources["memory.L2.latency"] = "spec: known";
  const std::vector<Sensitivity> found = sensitivities(machine, streaming_or_computing(machine), 4);
  REQUIRE(found.size() == 1);
  const Sensitivity& bandwidth = found.front();
  CHECK(bandwidth.key == "memory.DRAM.bandwidth");
  CHECK(bandwidth.value == machine.dram().bandwidth.value());
  CHECK_THAT(bandwidth.elasticity, WithinRel(-1, 1e-6));
  CHECK_FALSE(bandwidth.up);
  REQUIRE(bandwidth.down);
  CHECK(bandwidth.down->choice == "compute");
  CHECK(bandwidth.down->factor <= 0.75);
  CHECK_THAT(bandwidth.down->factor, WithinRel(0.75, 2 * SensitivityOptions().flip_resolution));
  CHECK_THAT(bandwidth.down->value, WithinRel(bandwidth.down->factor * bandwidth.value, 1e-12));
}

TEST_CASE("a flip beyond the range is not told, and a count moves by whole ones") {
  Machine machine = mi50_like();
  machine.sources["memory.DRAM.bandwidth"] = "spec: known";
  CHECK_FALSE(sensitivities(machine, streaming_or_computing(machine), 1.2).front().down);
  machine.sources = {{"compute_units", "spec: known"}};
  const int units = machine.compute_units;
  const Question question = [units](const Machine& changed) {
    return Answer{changed.compute_units > units + 1 ? "many" : "few", 1.0 / changed.compute_units};
  };
  const std::vector<Sensitivity> found = sensitivities(machine, question, 2);
  REQUIRE(found.size() == 1);
  REQUIRE(found.front().up);
  CHECK(found.front().up->value == units + 2);
  CHECK_THAT(found.front().elasticity, WithinRel(-1, 1e-6));
}

TEST_CASE("the measured share of DRAM's bandwidth that a matmul kernel reaches is such a figure, at most 1") {
  Machine machine = mi50_like();
  const MatmulKernel kernel{Dtype::int4, ActivationMode::int8};
  machine.matmul_rates[kernel] = {{1, FlopsPerSecond(1e11)}};
  machine.matmul_dram_shares[kernel] = {{1, 0.5}};
  const std::string key = "matmul_dram_shares.int4_int8.rows_1";
  machine.sources[key] = "measured: here";
  const Question question = [&kernel](const Machine& changed) {
    return Answer{"same", 1 / changed.matmul_dram_shares.at(kernel).at(1)};
  };
  const std::vector<Sensitivity> found = sensitivities(machine, question, 4);
  REQUIRE(found.size() == 1);
  CHECK(found.front().key == key);
  CHECK(found.front().value == 0.5);
  CHECK_THAT(found.front().elasticity, WithinRel(-1, 1e-6));
  REQUIRE(scale_figure(machine, key, 4));
  CHECK(machine.matmul_dram_shares.at(kernel).at(1) == 1);
  CHECK_FALSE(scale_figure(machine, "matmul_dram_shares.int4_int8.rows_2", 4));
}

}  // namespace
}  // namespace dculab::sim::test

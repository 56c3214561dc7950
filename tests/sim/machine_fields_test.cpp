// The one list of figures: each is found by its key, keeps its own bounds, and those with a prior are what is fitted.
#include "sim/hardware/machine_fields.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "sim/calibration/figure_scale.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/hardware/figure.hpp"
#include "sim/hardware/stack_fields.hpp"
#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// That a default lies within its figure's bounds, where it stands for a value and not for "not stated".
template <class Part, std::size_t N>
void check_list(const std::string& section, const std::array<FigureField<Part>, N>& fields) {
  std::set<std::string_view> keys;
  const Part untouched{};
  for (const FigureField<Part>& field : fields) {
    INFO(section << field.info.key);
    CHECK(keys.insert(field.info.key).second);
    CHECK_FALSE(field.info.meaning.empty());
    CHECK_FALSE(field.info.unit.empty());
    CHECK(field.info.bounds.low <= field.info.bounds.high);
    CHECK(find_figure_info(section + std::string(field.info.key)) == &field.info);
    if (field.info.is_required() || !field.info.absent.empty()) continue;
    const double standard = visit_figure(untouched, field, [](const auto& figure) { return number_of(figure); });
    CHECK(contains(field.info.bounds, standard));
  }
}

TEST_CASE("every figure of a machine is found under its key, with its own bounds") {
  check_list("", kDesign);
  check_list("", kLinks);
  check_list("power.", kPower);
  check_list("", kPrice);
  check_list("peaks.f16.", kPeak);
  check_list("memory.L2.", kLevel);
  check_list("waves.", kWaves);
  check_list("overheads.", kOverheads);
  check_list("sustained.", kSustained);
  check_list("stack.reached.", kReached);
  for (const FigureInfo* info : kMatmuls) CHECK(find_figure_info(std::string(info->key) + ".int4_int8.rows_8") == info);
  for (const char* key : {"memory.L2.colour", "sustained.matmul_compute", "stack.host.colour", "name", ""})
    CHECK(find_figure_info(key) == nullptr);
}

TEST_CASE("every figure of a stack is found under its key, with its own bounds") {
  for (const std::string& key : stack_figures()) {
    INFO(key);
    const FigureInfo* info = find_figure_info(key);
    REQUIRE(info != nullptr);
    CHECK(key.ends_with(info->key));
    CHECK_FALSE(info->meaning.empty());
  }
}

TEST_CASE("times that cannot be 0 have a lower bound, and counts that can have none") {
  for (const char* key : {"memory.L1.latency", "peer_latency", "network_latency", "collective_start"})
    CHECK(find_figure_info(key)->bounds == between(1e-12, 1e3));
  CHECK(find_figure_info("overheads.host_per_step")->bounds == between(0, 1e3));
  CHECK(find_figure_info("memory.L2.outstanding")->bounds == between(0, 1 << 20));
  CHECK(find_figure_info("waves.simds_per_unit")->bounds == between(1, 1024));
  CHECK(find_figure_info("waves.wave_size")->bounds == between(1, 1 << 20));
  CHECK(find_figure_info("stack.kernels_per_op")->bounds == between(0.1, 100));
}

TEST_CASE("what has a prior is fitted, each in a place of its own") {
  const auto fitted = parameters();
  REQUIRE(fitted.size() == 18);
  for (std::size_t index = 0; index < fitted.size(); ++index) {
    INFO(fitted[index].key);
    CHECK(fitted[index].place == static_cast<int>(index) + 1);
    CHECK(fitted[index].log_sigma > 0);
    CHECK(fitted[index].lowest < fitted[index].highest);
    CHECK(find_figure_info(fitted[index].key)->prior.place == fitted[index].place);
  }
  const auto owner = [&](std::string_view key) { return std::ranges::find(fitted, key, &Parameter::key)->owner; };
  CHECK(owner("stack.reached.overlap") == Owner::kernels);
  CHECK(owner("stack.reached.counted_kernels") == Owner::program);
  CHECK(owner("overheads.host_per_step") == Owner::host);
  CHECK(owner("overheads.timed_call") == Owner::device);
}

TEST_CASE("a figure that is no quantity is not scaled, and a line only by two") {
  Machine machine = mi50_like();
  machine.peers = 7;
  machine.direct_peers = 3;
  for (const char* key : {"waves.wave_size", "waves.simds_per_unit", "waves.lds_granule", "peers", "direct_peers"})
    CHECK_FALSE(scale_figure(machine, key, 1.5));
  const std::string line = "memory." + machine.memory.front().name + ".line";
  const double before = *figure_value(machine, line);
  REQUIRE(scale_figure(machine, line, 1.1));
  CHECK(*figure_value(machine, line) == 2 * before);
}

}  // namespace
}  // namespace dculab::sim::test

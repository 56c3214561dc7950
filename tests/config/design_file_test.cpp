// Figures of a machine file that follow its design, and what a scenario makes of them.
#include <algorithm>
#include <filesystem>

#include "config/machine_figure.hpp"
#include "config/machine_file.hpp"
#include "core/error.hpp"
#include "sim/hardware/design.hpp"
#include "sim/hardware/figure.hpp"
#include "tests/config/shipped_machine.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

namespace fs = std::filesystem;

// A GPU that does not exist: every figure that can be derived is left out.
std::string designed(const std::string& peak = "{per_unit_clock: 128 FLOP, kind: assumed, source: a design}",
                     const std::string& bandwidth = "{per_channel_clock: 64 B, kind: assumed, source: a design}",
                     const std::string& channels = "    channels: {value: 16, kind: assumed, source: a design}\n") {
  const auto figure = [](const std::string& value) { return "{" + value + ", kind: assumed, source: a design}\n"; };
  const auto level = [&](const std::string& name, const char* scope, const std::string& size) {
    return "  - name: " + name + "\n    scope: " + scope + "\n    size: " + figure("value: " + size) +
           "    line: " + figure("value: 64 B");
  };
  return "schema: dculab/machine/1\nname: design\ndescription: a design\nkind: gpu\ncompute_units: " +
         figure("value: 100") + "clock: " + figure("value: 2 GHz") +
         "clock_states:\n  boost: " + figure("value: 2.5 GHz") + "peaks:\n  f32:\n    vector: " + peak + "\nmemory:\n" +
         level("L1", "compute_unit", "16 KiB") + "    bandwidth: " + figure("per_unit_clock: 64 B") +
         "    latency: " + figure("clocks: 100") + level("L2", "device", "8 MiB") + channels +
         "    bandwidth: " + bandwidth + "\n    latency: " + figure("clocks: 200") + level("DRAM", "device", "32 GiB") +
         "    channels: " + figure("value: 32") + "    bandwidth: " + figure("per_channel: 50 GB/s") +
         "    latency: " + figure("value: 300 ns, clocks: 200") + "waves:\n  wave_size: " + figure("value: 64") +
         "  simds_per_unit: " + figure("value: 4") + "  max_waves_per_simd: " + figure("value: 10") +
         "  vgprs_per_lane: " + figure("value: 256") + "  vgpr_granule: " + figure("value: 4") +
         "  max_workgroups_per_unit: " + figure("value: 16") + "  lds_per_unit: " + figure("value: 64 KiB") +
         "  lds_granule: " + figure("value: 512 B") + "overheads:\n  kernel_launch: " + figure("value: 2 us");
}

std::string refusal_of_machine(const std::string& yaml) {
  try {
    (void)read_machine("m.yaml", yaml);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Node figure_of(const std::string& key, const std::string& text) {
  Node node;
  node.kind = NodeKind::scalar;
  node.key = key;
  node.text = text;
  return node;
}

sim::Machine with_figures(sim::Machine machine, const std::vector<std::pair<std::string, std::string>>& figures) {
  std::vector<Node> nodes;
  for (const auto& [key, text] : figures) nodes.push_back(figure_of(key, text));
  ProblemList problems("s.yaml");
  set_figures(machine, nodes, problems);
  problems.throw_if_any();
  return machine;
}

double figure_value_of(const sim::Machine& machine, const std::string& key) { return *sim::figure_value(machine, key); }

TEST_CASE("a design's figures are its units, clock and channels times what each does") {
  const sim::Machine machine = read_machine("m.yaml", designed());
  CHECK(figure_value_of(machine, "peaks.f32.vector") == Approx(100 * 2e9 * 128));
  CHECK(figure_value_of(machine, "memory.L1.bandwidth") == Approx(100 * 2e9 * 64));
  CHECK(figure_value_of(machine, "memory.L2.bandwidth") == Approx(16 * 2e9 * 64));
  CHECK(figure_value_of(machine, "memory.DRAM.bandwidth") == Approx(32 * 50e9));
  CHECK(figure_value_of(machine, "memory.L1.latency") == Approx(50e-9));
  CHECK(figure_value_of(machine, "memory.L2.latency") == Approx(100e-9));
  CHECK(figure_value_of(machine, "memory.DRAM.latency") == Approx(300e-9));
  const sim::Machine again = read_machine("again", machine_yaml(machine));
  CHECK(again.derivations == machine.derivations);
  CHECK(again.clock_states == machine.clock_states);
  CHECK(machine_yaml(again) == machine_yaml(machine));
}

TEST_CASE("other units, clocks and channels take along what follows them, and nothing else") {
  const sim::Machine before = read_machine("m.yaml", designed());
  const auto ratio = [&](const sim::Machine& after, const std::string& key) {
    return figure_value_of(after, key) / figure_value_of(before, key);
  };
  const sim::Machine units = with_figures(before, {{"compute_units", "150"}});
  for (const char* key : {"peaks.f32.vector", "memory.L1.bandwidth"}) CHECK(ratio(units, key) == Approx(1.5));
  for (const char* key : {"memory.L2.bandwidth", "memory.DRAM.bandwidth", "memory.L1.latency", "memory.L2.size"})
    CHECK(ratio(units, key) == 1);
  const sim::Machine clock = with_figures(before, {{"clock", "1 GHz"}});
  for (const char* key : {"peaks.f32.vector", "memory.L1.bandwidth", "memory.L2.bandwidth"})
    CHECK(ratio(clock, key) == Approx(0.5));
  CHECK(ratio(clock, "memory.L2.latency") == Approx(2));
  CHECK(figure_value_of(clock, "memory.DRAM.latency") == Approx(400e-9));  // 200 ns of it are not on the clock
  CHECK(ratio(clock, "memory.DRAM.bandwidth") == 1);
  const sim::Machine channels = with_figures(before, {{"memory.DRAM.channels", "2 x"}, {"memory.L2.channels", "24"}});
  CHECK(ratio(channels, "memory.DRAM.bandwidth") == Approx(2));
  CHECK(ratio(channels, "memory.L2.bandwidth") == Approx(1.5));
  CHECK(ratio(channels, "peaks.f32.vector") == 1);
}

TEST_CASE("a figure that is set has the last word, in whatever order, and follows from there") {
  const sim::Machine before = read_machine("m.yaml", designed());
  for (const bool first : {true, false}) {
    std::vector<std::pair<std::string, std::string>> figures{{"memory.DRAM.bandwidth", "2 TB/s"},
                                                             {"memory.DRAM.channels", "64"}};
    if (first) std::ranges::reverse(figures);
    const sim::Machine machine = with_figures(before, figures);
    CHECK(figure_value_of(machine, "memory.DRAM.bandwidth") == 2e12);
    CHECK(figure_value_of(with_figures(machine, {{"memory.DRAM.channels", "0.5 x"}}), "memory.DRAM.bandwidth") ==
          Approx(1e12));
  }
  CHECK(figure_value_of(with_figures(before, {{"memory.DRAM.channels", "64"}, {"memory.DRAM.bandwidth", "0.5 x"}}),
                        "memory.DRAM.bandwidth") == Approx(1.6e12));
}

TEST_CASE("a clock may be named") {
  const sim::Machine before = read_machine("m.yaml", designed());
  const sim::Machine same = with_figures(before, {{"clock", "default"}});
  CHECK(same.clock == before.clock);
  CHECK_FALSE(same.redesign.has_value());
  CHECK(same.sources == before.sources);
  CHECK(figure_value_of(same, "peaks.f32.vector") == figure_value_of(before, "peaks.f32.vector"));
  CHECK(with_figures(before, {{"clock", "boost"}}).clock == Hertz(2.5e9));
  CHECK(figure_value_of(with_figures(before, {{"clock", "boost"}}), "memory.L1.bandwidth") == Approx(100 * 2.5e9 * 64));
  CHECK(with_figures(shipped("k100"), {{"clock", "query"}}).sources.at("clock").starts_with("measured: HSA query"));
  CHECK_THROWS_WITH(with_figures(before, {{"clock", "turbo"}}),
                    ContainsSubstring("'turbo' is no clock of design; write default, boost, or a frequency such as"));
  CHECK_THROWS_WITH(with_figures(before, {{"clock", "-1 GHz"}}), ContainsSubstring("a clock cannot be"));
}

TEST_CASE("what a scenario's figures took along is said") {
  const sim::Machine machine = with_figures(shipped("z100"), {{"compute_units", "128"}, {"memory.L2.size", "16 MiB"}});
  REQUIRE(machine.redesign.has_value());
  const sim::Redesign& redesign = *machine.redesign;
  CHECK(redesign.set == std::vector<std::string>{"compute_units", "memory.L2.size"});
  const auto has = [](const std::vector<std::string>& keys, const char* key) {
    return std::ranges::count(keys, key) == 1;
  };
  CHECK(has(redesign.followed, "peaks.f16.vector"));
  CHECK(has(redesign.followed, "memory.L1.bandwidth"));
  CHECK(has(redesign.stayed, "memory.L2.bandwidth"));
  CHECK(has(redesign.stayed, "memory.DRAM.bandwidth"));
  CHECK_FALSE(has(redesign.stayed, "memory.L2.size"));
  CHECK_THAT(machine.sources.at("peaks.f16.vector"),
             ContainsSubstring("follows compute_units, which the scenario sets"));
  CHECK_FALSE(shipped("z100").redesign.has_value());
}

TEST_CASE("figures without what they follow stay, and say so") {
  sim::Machine machine = shipped("z100");
  machine.derivations.clear();  // as a probed machine's
  const sim::Machine faster = with_figures(machine, {{"clock", "2 x"}});
  CHECK(figure_value_of(faster, "peaks.f16.vector") == figure_value_of(machine, "peaks.f16.vector"));
  CHECK(faster.redesign->followed.empty());
  CHECK(std::ranges::count(faster.redesign->stayed, "peaks.f16.vector") == 1);
  machine.memory[1].channels = 0;
  CHECK_THROWS_WITH(with_figures(machine, {{"memory.L2.channels", "32"}}),
                    ContainsSubstring("it states no channels there; set machine.memory.L2.bandwidth"));
}

TEST_CASE("a design that cannot be is refused with what is offered") {
  const std::string channel_peak = "{per_channel_clock: 64 B, kind: assumed, source: a design}";
  CHECK(refusal_of_machine(designed()).empty());
  CHECK_THAT(
      refusal_of_machine(designed("{per_unit_clock: 128 FLOP, kind: assumed, source: a design}", channel_peak, "")),
      ContainsSubstring("memory.L2.bandwidth.per_channel_clock: memory.L2 has no channels; add to it channels: "
                        "{value: 16, kind: ..., source: ...}, or state the bandwidth as a value alone"));
  CHECK_THAT(refusal_of_machine(designed("{kind: assumed, source: a design}")),
             ContainsSubstring("peaks.f32.vector: needs a value, or what it follows: per_unit_clock"));
  CHECK_THAT(refusal_of_machine(designed("{per_unit_clock: 128 B, kind: assumed, source: a design}")),
             ContainsSubstring("'128 B' is a size, not a FLOP count"));
  CHECK_THAT(refusal_of_machine(designed("{per_unit_clock: -128 FLOP, kind: assumed, source: a design}")),
             ContainsSubstring("'-128 FLOP' is negative"));
  CHECK_THAT(
      refusal_of_machine(designed("{value: 12.8 TFLOP/s, per_unit_clock: 128 FLOP, kind: assumed, source: a design}")),
      ContainsSubstring("peaks.f32.vector: 12.8 TFLOP/s, but 25.6 TFLOP/s follow"));
  CHECK_THAT(
      refusal_of_machine(designed("{value: 26.5 TFLOP/s, per_unit_clock: 128 FLOP, kind: assumed, source: a design}")),
      ContainsSubstring("a share must be at least 0.55 and at most 1.02"));
  CHECK_THAT(
      refusal_of_machine(designed("{per_unit_clock: 128 FLOP, kind: assumed, source: a design}",
                                  "{per_channel_clock: 64 B, per_channel: 5 GB/s, kind: assumed, source: a design}")),
      ContainsSubstring("one of per_channel_clock, per_channel is enough; keep one"));
  CHECK_THAT(refusal_of_machine(designed("{per_unit_clock: 128 FLOP, kind: assumed, source: a design}",
                                         "{per_unit_clock: 64 B, kind: assumed, source: a design}")),
             ContainsSubstring("memory.L2.bandwidth.per_unit_clock: unknown key"));
}

TEST_CASE("every shipped machine can be designed, and its published figures are shares of what follows") {
  for (const fs::directory_entry& entry : fs::directory_iterator(DCULAB_SOURCE_DIR "/hwmodels")) {
    if (entry.path().extension() != ".yaml") continue;
    const sim::Machine machine = read_machine_file(entry.path());
    INFO(machine.name);
    for (const auto& [dtype, peak] : machine.peaks) {
      CHECK(machine.derivations.contains("peaks." + std::string(name(dtype)) + ".vector"));
      CHECK(machine.derivations.contains("peaks." + std::string(name(dtype)) + ".matrix") == peak.matrix.has_value());
    }
    for (const sim::MemoryLevel& level : machine.memory) {
      CHECK(machine.derivations.contains("memory." + level.name + ".bandwidth"));
      CHECK(machine.derivations.contains("memory." + level.name + ".latency"));
      CHECK((level.channels > 0) == (level.scope == sim::Scope::device));
    }
    for (const char* driver : {"compute_units", "clock", "memory.DRAM.channels"})
      CHECK_FALSE(sim::followers(machine, driver).empty());
    for (const auto& [state, clock] : machine.clock_states) CHECK_NOTHROW(with_figures(machine, {{"clock", state}}));
  }
}

// A K100-AI at 1.4 GHz, as the query of its sibling has it: 172 TFLOP/s by derivation, of which the page has 0.977.
TEST_CASE("a published peak keeps its share of what follows") {
  const sim::Machine card = shipped("k100-ai"), query = with_figures(card, {{"clock", "query"}});
  CHECK(figure_value_of(query, "peaks.f16.matrix") == Approx(192e12 * 1.4 / 1.6));
  CHECK(figure_value_of(query, "peaks.f16.matrix") / (120 * 1.4e9 * 1024) == Approx(192e12 / (120 * 1.6e9 * 1024)));
}

}  // namespace
}  // namespace dculab::config

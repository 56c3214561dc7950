// The shipped machines make sense: what holds of every processor, and what their files must say.
#include <algorithm>
#include <filesystem>
#include <map>

#include "config/csv_rows.hpp"
#include "config/machine_file.hpp"
#include "files/input.hpp"
#include "sim/calibration/figure_scale.hpp"
#include "sim/hardware/device_link.hpp"
#include "tests/config/shipped_machine.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

namespace fs = std::filesystem;

std::vector<sim::Machine> shipped_machines() {
  std::vector<sim::Machine> machines;
  for (const fs::directory_entry& entry : fs::directory_iterator(DCULAB_SOURCE_DIR "/hwmodels"))
    if (entry.path().extension() == ".yaml") machines.push_back(read_machine_file(entry.path()));
  return machines;
}

TEST_CASE("the machines that the documents name are shipped") {
  for (const char* name :
       {"z100",     "z100l",  "k100",      "k100-lc",        "k100-ai",       "k500sm-ai",  "bw500sm",
        "bw1000",   "bw1100", "bw1101",    "mi50",           "mi50-32gb",     "mi60",       "radeon-pro-vii",
        "mi100",    "mi210",  "mi250-gcd", "mi250x-gcd",     "mi300x",        "mi308x",     "mi325x",
        "mi350x",   "mi355x", "a100-40gb", "a100-80gb-pcie", "a100-80gb-sxm", "h100-sxm",   "h100-pcie",
        "h20-96gb", "h200",   "h800",      "b200",           "b300",          "x86-server", "hygon-c86-7285"}) {
    INFO(name);
    CHECK(shipped(name).name == name);
  }
}

TEST_CASE("four GCDs of an MI250 exchange over Infinity Fabric, not over the network") {
  for (const char* name : {"mi250-gcd", "mi250x-gcd"}) {
    const sim::Machine gcd = shipped(name);
    CHECK(sim::link_among(gcd, 2)->peak == BytesPerSecond(200e9));
    CHECK(sim::link_among(gcd, 4)->peak == BytesPerSecond(50e9));
    CHECK(sim::link_among(gcd, 4)->latency == gcd.peer_latency);
  }
}

// But those that a source leaves unnamed, such as sm89-unnamed-48gb.
TEST_CASE("every machine that measured points name is shipped") {
  int rows = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(DCULAB_SOURCE_DIR "/tests/data")) {
    if (!entry.path().string().ends_with("_points.csv")) continue;
    ProblemList problems(entry.path().string());
    for (const Node& row :
         csv_rows(entry.path().string(), files::read_text(entry.path().string(), 1 << 24), problems)) {
      const Node* machine = row.find("machine");
      REQUIRE(machine != nullptr);
      INFO(entry.path() << ": " << machine->text);
      if (machine->text.find("unnamed") == std::string::npos)
        CHECK(fs::exists(DCULAB_SOURCE_DIR "/hwmodels/" + machine->text + ".yaml"));
      ++rows;
    }
    CHECK_NOTHROW(problems.throw_if_any());
  }
  CHECK(rows >= 224);
}

TEST_CASE("nearer memory is smaller, faster and sooner there") {
  for (const sim::Machine& machine : shipped_machines()) {
    for (std::size_t index = 1; index < machine.memory.size(); ++index) {
      const sim::MemoryLevel& above = machine.memory[index - 1];
      const sim::MemoryLevel& below = machine.memory[index];
      INFO(machine.name << ": " << above.name << " over " << below.name);
      CHECK(above.size < below.size);
      CHECK(above.bandwidth > below.bandwidth);
      CHECK(above.latency < below.latency);
    }
  }
}

TEST_CASE("narrower formats are multiplied at least as fast, and matrix units are no slower than vectors") {
  for (const sim::Machine& machine : shipped_machines()) {
    INFO(machine.name);
    const sim::Peak& f32 = machine.peaks.at(Dtype::f32);
    const sim::Peak& f16 = machine.peaks.at(Dtype::f16);
    const sim::Peak& bf16 = machine.peaks.at(Dtype::bf16);
    const sim::Peak& int8 = machine.peaks.at(Dtype::int8);
    CHECK(f16.vector >= f32.vector);
    CHECK(f16.vector >= bf16.vector);
    CHECK(int8.vector >= f16.vector);
    CHECK(f16.matrix.has_value() == int8.matrix.has_value());
    if (f32.matrix) CHECK(*f16.matrix >= *f32.matrix);
    if (f16.matrix && machine.name != "b300") CHECK(*int8.matrix >= *f16.matrix);  // INT8 is all but gone there
    for (const auto& [dtype, peak] : machine.peaks)
      if (peak.matrix) CHECK(*peak.matrix >= peak.vector);
  }
}

TEST_CASE("decode is bound by memory everywhere: the ridge lies above one FLOP per byte") {
  for (const sim::Machine& machine : shipped_machines()) {
    INFO(machine.name);
    const sim::Peak& f16 = machine.peaks.at(Dtype::f16);
    const double ridge = f16.matrix.value_or(f16.vector).value() / machine.dram().bandwidth.value();
    CHECK(ridge > 2);
    CHECK(ridge < 1000);
  }
}

TEST_CASE("links: over the network no faster than in the server, and stated with all they need") {
  for (const sim::Machine& machine : shipped_machines()) {
    INFO(machine.name);
    CHECK(machine.peer_link.has_value() == machine.peers.has_value());
    CHECK(machine.peer_link.has_value() == machine.peer_latency.has_value());
    CHECK(machine.direct_peers.value_or(0) <= machine.peers.value_or(0));
    CHECK(machine.network_link.has_value() == machine.network_latency.has_value());
    if (machine.peer_link) CHECK(*machine.peer_link < machine.dram().bandwidth);
    if (machine.peer_link && machine.network_link) CHECK(*machine.network_link < *machine.peer_link);
    const bool shares_memory = machine.kind == lower::DeviceKind::cpu || machine.name == "strix-halo";
    CHECK(machine.host_link.has_value() != shares_memory);
  }
}

// A source says more than a word, and a conflict or a guess is explained.
TEST_CASE("every figure has a source, and an assumption its reasoning") {
  for (const sim::Machine& machine : shipped_machines())
    for (const auto& [key, source] : machine.sources) {
      INFO(machine.name << ": " << key << ": " << source);
      const std::string said = source.substr(source.find(": ") + 2);
      CHECK(said.size() >= 3);
      if (source.starts_with("assumed")) CHECK(said.size() >= 10);
    }
}

TEST_CASE("peaks follow from units, FLOP a clock and the clock") {
  struct Expected {
    const char* machine;
    Dtype dtype;
    bool matrix;
    double flop_per_clock;  // of one unit
  };
  for (const Expected& each :
       {Expected{"z100l", Dtype::f16, false, 256}, Expected{"k100", Dtype::int8, false, 512},
        Expected{"bw1000", Dtype::f16, true, 4096}, Expected{"mi100", Dtype::f16, true, 1024},
        Expected{"mi100", Dtype::bf16, true, 512}, Expected{"mi250x-gcd", Dtype::f16, true, 1024},
        Expected{"mi250-gcd", Dtype::int8, true, 1024}, Expected{"mi300x", Dtype::fp8_e4m3, true, 4096},
        Expected{"mi60", Dtype::f16, false, 256}, Expected{"k100-lc", Dtype::int8, false, 512},
        Expected{"mi355x", Dtype::fp8_e4m3, true, 8192}, Expected{"b200", Dtype::f16, true, 8192},
        Expected{"a100-40gb", Dtype::f16, true, 2048}, Expected{"h200", Dtype::f16, true, 4096},
        Expected{"x86-server", Dtype::f32, false, 64}}) {
    INFO(each.machine << ", " << name(each.dtype));
    const sim::Machine machine = shipped(each.machine);
    const sim::Peak& peak = machine.peaks.at(each.dtype);
    const double rate = machine.compute_units * machine.clock.value() * each.flop_per_clock;
    CHECK_THAT((each.matrix ? *peak.matrix : peak.vector).value(), WithinRel(rate, 0.01));
  }
}

TEST_CASE("a GCD of MI250 is an MI210 but for its links") {
  const sim::Machine gcd = shipped("mi250-gcd");
  const sim::Machine card = shipped("mi210");
  CHECK(gcd.compute_units == card.compute_units);
  CHECK(gcd.peaks.at(Dtype::f16).matrix == card.peaks.at(Dtype::f16).matrix);
  for (std::size_t index = 0; index < card.memory.size(); ++index) {
    CHECK(gcd.memory[index].bandwidth == card.memory[index].bandwidth);
    CHECK(gcd.memory[index].latency == card.memory[index].latency);
  }
}

TEST_CASE("every assumed figure but counts of the architecture can be scaled") {
  const auto is_structure = [](const std::string& key) {
    return key.ends_with(".ways") || key == "waves.wave_size" || key == "waves.simds_per_unit" ||
           key == "waves.vgpr_granule" || key == "waves.lds_granule" || key.ends_with("peers") ||
           key.starts_with("clock_states.") || key.starts_with("reached.");  // what a stack takes of it is scaled
  };
  for (const sim::Machine& machine : shipped_machines())
    for (const std::string& key : machine.assumed) {
      INFO(machine.name << ": " << key);
      sim::Machine more = machine;
      CHECK(sim::scale_figure(more, key, 1.1) != is_structure(key));
      CHECK((machine_yaml(more) != machine_yaml(machine)) != is_structure(key));
      CHECK(sim::problems(more).empty());
    }
}

}  // namespace
}  // namespace dculab::config

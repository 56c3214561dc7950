#include "config/machine_file.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "config/machine_figure.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "fields/utf8.hpp"
#include "lower/device.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/hardware/machine_fields.hpp"
#include "sim/hardware/stack_fields.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> shipped_files() {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(DCULAB_SOURCE_DIR "/hwmodels"))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string shipped_file(const std::string& name) { return DCULAB_SOURCE_DIR "/hwmodels/" + name + ".yaml"; }

// Keys whose evidence begins with `kind`.
std::vector<std::string> keys_with(const sim::Machine& machine, const std::string& kind) {
  std::vector<std::string> keys;
  for (const auto& [key, source] : machine.sources)
    if (source.starts_with(kind + ": ")) keys.push_back(key);
  return keys;
}

TEST_CASE("every shipped machine loads, is sound and is named as its file") {
  const std::vector<std::string> files = shipped_files();
  CHECK(files.size() >= 8);
  for (const std::string& file : files) {
    INFO(file);
    const sim::Machine machine = read_machine_file(file);
    CHECK(sim::problems(machine).empty());
    CHECK(machine.name == fs::path(file).stem().string());
    CHECK(machine.memory.back().name == "DRAM");
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::int8}) CHECK(machine.peaks.contains(dtype));
    std::vector<std::string> assumed = machine.assumed;
    std::sort(assumed.begin(), assumed.end());
    std::vector<std::string> uncertain = keys_with(machine, "assumed");
    std::ranges::copy(keys_with(machine, "inferred"), std::back_inserter(uncertain));
    std::ranges::sort(uncertain);
    CHECK(assumed == uncertain);
    CHECK(keys_with(machine, "spec").size() + keys_with(machine, "measured").size() + assumed.size() ==
          machine.sources.size());
  }
}

TEST_CASE("how long a cache keeps what other tenants drive out is written and read back") {
  sim::Machine machine = read_machine_file(shipped_files().front());
  machine.memory[1].retention_time = Seconds(5.5e-3);
  cite(machine, "memory." + machine.memory[1].name + ".kept_for", sim::Evidence::measured, "a probe");
  const sim::Machine again = read_machine("again", machine_yaml(machine));
  CHECK(again.memory[0].retention_time == Seconds(0));
  CHECK(again.memory[1].retention_time == Seconds(5.5e-3));
}

TEST_CASE("a machine's texts are written and read back, whatever they are") {
  sim::Machine machine = read_machine_file(shipped_files().front());
  machine.description.clear();
  for (char32_t letter = 0; letter < 0x100; ++letter) append_character(machine.description, letter);
  for (const char32_t letter : {0x2028, 0x2029, 0xFEFF, 0x1F600}) append_character(machine.description, letter);
  CHECK(read_machine("again", machine_yaml(machine)).description == machine.description);
}

TEST_CASE("every shipped machine is written and read back the same") {
  for (const std::string& file : shipped_files()) {
    INFO(file);
    const sim::Machine machine = read_machine_file(file);
    const std::string yaml = machine_yaml(machine);
    const sim::Machine again = read_machine("again", yaml);
    CHECK(machine_yaml(again) == yaml);
    CHECK(again.sources == machine.sources);
    CHECK(again.description == machine.description);
    CHECK(again.clock == machine.clock);
    REQUIRE(again.memory.size() == machine.memory.size());
    for (std::size_t index = 0; index < machine.memory.size(); ++index) {
      CHECK(again.memory[index].latency == machine.memory[index].latency);
      CHECK(again.memory[index].bandwidth == machine.memory[index].bandwidth);
      CHECK(again.memory[index].size == machine.memory[index].size);
      CHECK(again.memory[index].ways == machine.memory[index].ways);
    }
    CHECK(again.peaks.at(Dtype::f16).matrix == machine.peaks.at(Dtype::f16).matrix);
    CHECK(again.waves.lds_per_unit == machine.waves.lds_per_unit);
    CHECK(again.host_link == machine.host_link);
    CHECK(again.peer_link == machine.peer_link);
    CHECK(again.peers == machine.peers);
    CHECK(again.direct_peers == machine.direct_peers);
    CHECK(again.peer_latency == machine.peer_latency);
    CHECK(again.collective_start == machine.collective_start);
    CHECK(again.network_link == machine.network_link);
    CHECK(again.network_latency == machine.network_latency);
  }
}

TEST_CASE("z100-coopt holds the paper's numbers") {
  const sim::Machine machine = read_machine_file(shipped_file("z100-coopt"));
  CHECK(machine.dram().bandwidth == BytesPerSecond(512e9));
  CHECK(machine.memory.at(1).size == 4.0 * kMiB);
  CHECK(machine.waves.wave_size == 64);
  CHECK(machine.peaks.at(Dtype::f16).vector == FlopsPerSecond(15e12));
  CHECK_FALSE(machine.peaks.contains(Dtype::fp8_e4m3));  // emulated through INT8: no rate of its own
  CHECK(machine.host_link.has_value());
  const Cycles latency = machine.dram().latency * machine.clock;
  CHECK_THAT(latency.value(), WithinRel(400.0, 0.001));
}

TEST_CASE("gfx906 peaks follow from lanes, clock and packing") {
  for (const std::string name : {"z100", "mi50"}) {
    const sim::Machine machine = read_machine_file(shipped_file(name));
    const double lanes = machine.compute_units * 128.0 * machine.clock.value();
    CHECK_THAT(machine.peaks.at(Dtype::f32).vector.value(), WithinRel(lanes, 0.015));
    CHECK_THAT(machine.peaks.at(Dtype::f16).vector.value(), WithinRel(2 * lanes, 0.015));
    CHECK_THAT(machine.peaks.at(Dtype::int8).vector.value(), WithinRel(4 * lanes, 0.015));
    CHECK_FALSE(machine.peaks.at(Dtype::f16).matrix.has_value());
  }
}

// Every figure under `node`, by its path.
void collect_figures(const Node& node, const std::string& path, std::vector<std::pair<std::string, Node>>& figures) {
  if (node.find("value") != nullptr) figures.emplace_back(path, node);
  for (const Node& child : node.children) {
    const Node* name = child.key.empty() ? child.find("name") : nullptr;
    const std::string part = name != nullptr ? name->text : child.key;
    collect_figures(child, path.empty() ? part : path + "." + part, figures);
  }
}

TEST_CASE("every figure of a machine file is cited under its path") {
  const Node document = read_yaml_file(shipped_file("mi300x"));
  std::vector<std::pair<std::string, Node>> figures;
  collect_figures(document, "", figures);
  const sim::Machine machine = read_machine_file(shipped_file("mi300x"));
  CHECK(figures.size() == machine.sources.size());
  for (const auto& [path, figure] : figures) {
    INFO(path);
    REQUIRE(machine.sources.contains(path));
    CHECK(machine.sources.at(path) == figure.find("kind")->text + ": " + figure.find("source")->text);
  }
}

TEST_CASE("a calibrated machine keeps what was fitted and where it comes from") {
  sim::Machine machine = read_machine_file(shipped_file("z100"));
  machine.stack.reached.matmul_compute = 0.7312345678;
  cite(machine, "stack.reached.matmul_compute", sim::Evidence::measured, "fit to \"trace\\1\"\nof today");
  const sim::Machine again = read_machine("again", machine_yaml(machine));
  CHECK(again.stack.reached.matmul_compute == 0.7312345678);
  const std::string source = "measured: fit to \"trace\\1\"\nof today";
  CHECK(again.sources.at("reached.dculab.matmul_compute") == source);
  CHECK(again.stack.sources.at("reached.matmul_compute") == source);
  // What has no source is a default, and stays one.
  CHECK_FALSE(again.sources.contains("reached.dculab.attention_compute"));
  CHECK(again.stack.reached.attention_compute == sim::Reached{}.attention_compute);
}

TEST_CASE("rates of matmul kernels are written and read back, by kernel and rows") {
  sim::Machine machine = read_machine_file(shipped_file("z100"));
  CHECK(machine.matmul_rates.empty());
  const sim::MatmulKernel int4{Dtype::int4, ActivationMode::int8}, f16{Dtype::f16, ActivationMode::exact};
  machine.matmul_rates = {{int4, {{1, FlopsPerSecond(9e10 / 7)}, {16, FlopsPerSecond(5e11)}}},
                          {f16, {{256, FlopsPerSecond(1e11)}}}};
  machine.matmul_dram_shares = {{int4, {{1, 0.7 / 3}}}, {f16, {{1, 0.25}}}};
  machine.short_matmul_rates = {{int4, {{8, FlopsPerSecond(4e10)}}}};
  machine.short_matmul_dram_shares = {{f16, {{1, 0.125}}}};
  for (const char* key :
       {"matmul_rates.int4_int8.rows_1", "matmul_rates.int4_int8.rows_16", "matmul_rates.f16_exact.rows_256",
        "matmul_dram_shares.int4_int8.rows_1", "matmul_dram_shares.f16_exact.rows_1",
        "short_matmul_rates.int4_int8.rows_8", "short_matmul_dram_shares.f16_exact.rows_1"})
    cite(machine, key, sim::Evidence::measured, "a run");
  const sim::Machine again = read_machine("again", machine_yaml(machine));
  CHECK(again.matmul_rates == machine.matmul_rates);
  CHECK(again.matmul_dram_shares == machine.matmul_dram_shares);
  CHECK(again.short_matmul_rates == machine.short_matmul_rates);
  CHECK(again.short_matmul_dram_shares == machine.short_matmul_dram_shares);
  CHECK(again.sources.at("matmul_rates.int4_int8.rows_16") == "measured: a run");
}

TEST_CASE("kernels and rows that cannot be are refused by their key") {
  const std::string yaml = machine_yaml(read_machine_file(shipped_file("z100")));
  const auto refusal = [&](const std::string& rates) {
    try {
      (void)read_machine("m.yaml", yaml + "matmul_rates:\n  " + rates + "\n");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string figure = "{value: 1 GFLOP/s, kind: measured, source: here}";
  CHECK(refusal("int4_exact: {rows_4: " + figure + "}").empty());
  CHECK_THAT(refusal("int5_exact: {rows_1: " + figure + "}"),
             ContainsSubstring("matmul_rates.int5_exact: unknown key"));
  for (const char* rows : {"rows_0", "rows_01", "rows_-1", "rows_", "rows_1x", "row_1", "rows_99999999999"})
    CHECK_THAT(refusal("int4_exact: {" + std::string(rows) + ": " + figure + "}"), ContainsSubstring("unknown key"));
  CHECK_THAT(refusal("int4_exact: {rows_1: {value: 0 GFLOP/s, kind: measured, source: here}}"),
             ContainsSubstring("out of range"));
}

TEST_CASE("the compute capability says which NVIDIA GPU it is, and is one that is known") {
  const std::string yaml = machine_yaml(read_machine_file(shipped_file("h100-sxm")));
  const std::string key = "compute_capability: \"9.0\"";
  REQUIRE(yaml.find(key) != std::string::npos);
  CHECK(lower::is_hopper(read_machine("m.yaml", yaml)));
  const auto with = [&](const std::string& line) {
    std::string changed = yaml;
    return changed.replace(yaml.find(key), key.size(), line);
  };
  const sim::Machine ampere = read_machine("m.yaml", with("compute_capability: \"8.0\""));
  CHECK(lower::is_nvidia(ampere));
  CHECK_FALSE(lower::is_hopper(ampere));
  CHECK_FALSE(lower::is_nvidia(read_machine("m.yaml", with(""))));  // waves of 32 lanes are others' too
  CHECK_THROWS_WITH(read_machine("m.yaml", with("compute_capability: \"9\"")), ContainsSubstring("compute_capability"));
}

TEST_CASE("figures that a scenario sets or scales stay within the bounds of the file") {
  const auto refusal = [](const std::string& key, const std::string& value) -> std::string {
    sim::Machine machine = read_machine_file(shipped_file("z100"));
    Node node;
    node.kind = NodeKind::scalar;
    node.key = key;
    node.text = value;
    ProblemList problems("s.yaml");
    set_figures(machine, {&node, 1}, problems);
    try {
      problems.throw_if_any();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal("memory.DRAM.bandwidth", "2 TB/s").empty());
  CHECK(refusal("memory.DRAM.bandwidth", "1e-3 x").empty());
  CHECK_THAT(refusal("memory.DRAM.bandwidth", "1e-300 GB/s"), ContainsSubstring("it must be at least 1 kB/s and"));
  CHECK(
      refusal("memory.DRAM.bandwidth", "1e-30 x") ==
      "s.yaml: machine.memory.DRAM.bandwidth: '1e-30 x' takes it out of range; it must be at least 1 kB/s and at most "
      "100000000 TB/s");
  CHECK_THAT(refusal("compute_units", "1e300 x"), ContainsSubstring("at least 1 and at most 1048576"));
  CHECK_THAT(refusal("memory.L2.outstanding", "1e9"), ContainsSubstring("at most 1048576"));
}

TEST_CASE("a scenario states the power and the price of a machine that has none, in the right order") {
  sim::Machine machine = read_machine_file(shipped_file("z100"));
  REQUIRE_FALSE(machine.power.is_stated());
  const auto set = [&machine](const std::string& key, const std::string& value) {
    Node node;
    node.kind = NodeKind::scalar;
    node.key = key;
    node.text = value;
    ProblemList problems("s.yaml");
    set_figures(machine, {&node, 1}, problems);
    problems.throw_if_any();
  };
  CHECK_THROWS_WITH(set("power.idle", "2 x"), ContainsSubstring("machine.power.idle: no figure of z100"));
  set("power.idle", "60 W");
  set("power.memory_bound", "0.2 kW");
  set("power.compute_bound", "280 W");
  set("price_per_hour", "0.9");
  CHECK(machine.power.is_stated());
  CHECK(machine.power.memory_bound == Watts(200));
  set("price_per_hour", "2 x");
  CHECK(machine.price_per_hour == 1.8);
  CHECK(machine.sources.at("power.idle") == "assumed: set by the scenario");
  CHECK_THROWS_WITH(set("power.compute_bound", "100 W"), ContainsSubstring("is below power.memory_bound"));
}

TEST_CASE("citing again replaces the evidence") {
  sim::Machine machine;
  cite(machine, "clock", sim::Evidence::assumed, "a guess");
  cite(machine, "clock", sim::Evidence::assumed, "a better guess");
  CHECK(machine.assumed == std::vector<std::string>{"clock"});
  cite(machine, "clock", sim::Evidence::inferred, "the rate of a product");
  CHECK(machine.assumed == std::vector<std::string>{"clock"});
  cite(machine, "clock", sim::Evidence::measured, "a run");
  CHECK(machine.assumed.empty());
  CHECK(machine.sources.at("clock") == "measured: a run");
}

TEST_CASE("what is inferred is uncertain, and written and read back as such") {
  sim::Machine machine = read_machine_file(shipped_file("mi210"));
  cite(machine, "clock", sim::Evidence::inferred, "the rate of a product");
  const sim::Machine again = read_machine("again", machine_yaml(machine));
  CHECK(again.sources.at("clock") == "inferred: the rate of a product");
  CHECK(std::ranges::count(again.assumed, "clock") == 1);
}

TEST_CASE("every figure that calibration fits can be written to a machine file") {
  std::vector<std::string> writable;
  for (const auto& field : sim::kOverheads) writable.push_back("overheads." + std::string(field.info.key));
  for (const auto& field : sim::kSustained) writable.push_back("sustained." + std::string(field.info.key));
  for (const auto& field : sim::kReached) writable.push_back("stack.reached." + std::string(field.info.key));
  REQUIRE(writable.size() == sim::parameters().size() + 1);  // reached.undisturbed is measured, not fitted
  for (const sim::Parameter& parameter : sim::parameters())
    CHECK(std::find(writable.begin(), writable.end(), parameter.key) != writable.end());
}

TEST_CASE("a figure without a source is not written") {
  sim::Machine machine = read_machine_file(shipped_file("z100"));
  machine.sources.erase("clock");
  CHECK_THROWS_WITH(machine_yaml(machine), ContainsSubstring("no source for clock"));
}

}  // namespace
}  // namespace dculab::config

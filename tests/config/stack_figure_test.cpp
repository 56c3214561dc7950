// Figures of a stack that a scenario changes: what they become, and what is refused with what is offered.
#include "config/stack_figure.hpp"

#include "config/machine_figure.hpp"
#include "config/machine_file.hpp"
#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "lower/vllm/kernels.hpp"
#include "sim/hardware/figure.hpp"
#include "tests/config/shipped_machine.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

Node figure(const std::string& key, const std::string& value) {
  Node node;
  node.kind = NodeKind::scalar;
  node.key = key;
  node.text = value;
  return node;
}

sim::Machine with_figure(sim::Machine machine, const std::string& key, const std::string& value) {
  ProblemList problems("s.yaml");
  const std::vector<Node> figures{figure(key, value)};
  set_stack_figures(machine, figures, problems);
  problems.throw_if_any();
  return machine;
}

std::string refusal_of_figure(const std::string& key, const std::string& value) {
  try {
    with_figure(shipped("z100"), key, value);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a scenario has the last word about what a stack reaches") {
  const sim::Machine machine = with_figure(shipped("k100-ai"), "reached.matmul_compute", "0.5");
  CHECK(machine.stack.reached.matmul_compute == 0.5);
  CHECK(*sim::source_of(machine, "stack.reached.matmul_compute") == "assumed: set by the scenario");
  CHECK(machine.reached.at("all").matmul_compute == 0.8);  // what the file says stays
}

TEST_CASE("figures of a stack take units, and factors of what they are") {
  sim::Machine machine = shipped("z100");
  CHECK(with_figure(machine, "host.per_step", "1 ms").stack.host_per_step == Seconds(1e-3));
  // Left to the machine, it is a factor of the machine's.
  CHECK(with_figure(machine, "host.per_step", "2 x").stack.host_per_step == 2 * machine.overheads.host_per_step);
  CHECK(with_figure(machine, "kernels_per_op", "3").stack.kernels_per_op == 3);
  CHECK(with_figure(machine, "reached.overlap", "0.5 x").stack.reached.overlap == Approx(0.4));
  CHECK(with_figure(machine, "reached.block_lookup", "20 ns").stack.reached.block_lookup == Seconds(20e-9));
  CHECK(with_figure(machine, "unfused.activation_scale", "2").stack.kernels.unfused.activation_scale == 2);
}

TEST_CASE("what is no figure of a stack is refused with those that are") {
  CHECK(refusal_of_figure("reached.matmul_comptue", "0.5") ==
        "s.yaml: stack.reached.matmul_comptue: no figure of a stack; did you mean 'reached.matmul_compute'?");
  CHECK_THAT(refusal_of_figure("colour", "red"),
             ContainsSubstring("known are entries.compress_kernels, entries.half_kernels, ") &&
                 ContainsSubstring("reached.undisturbed"));
  CHECK_THAT(refusal_of_figure("reached.overlap", "1.5"),
             ContainsSubstring("stack.reached.overlap: '1.5' is out of range"));
  CHECK_THAT(refusal_of_figure("host.per_step", "3"), ContainsSubstring("stack.host.per_step: "));
  CHECK_THAT(refusal_of_figure("kernels_per_op", "1000 x"), ContainsSubstring("'1000 x' takes it out of range"));
}

TEST_CASE("parameters of a stack's kernels are set by name, to what the kernel can have") {
  sim::Machine machine = shipped("mi300x");
  machine.stack.name = "triton";
  machine.stack.kernels.attention_decode = {&lower::vllm::kTritonUnified3d};
  const std::string begin = "parameters.triton_unified_attention_3d.";
  const auto segments = [](const sim::Machine& of) {
    return of.stack.kernels.parameters[lower::vllm::kTritonUnified3d.parameters.back()];
  };
  CHECK(segments(machine) == 16);
  CHECK(segments(with_figure(machine, begin + "segments", "64")) == 64);
  const auto refused = [&machine](const std::string& key, const std::string& value, const std::string& message) {
    CHECK_THROWS_WITH(with_figure(machine, key, value), ContainsSubstring(message));
  };
  refused(begin + "segments", "48", "'48' is none that the kernel can have; it takes 2, 4, 8");
  refused(begin + "segments", "many", "not a whole number");
  refused(begin + "rows", "64", "no parameter of a kernel of triton; known are " + begin + "block_m");
  CHECK_THROWS_WITH(with_figure(shipped("z100"), begin + "segments", "64"), ContainsSubstring("its kernels have none"));
}

TEST_CASE("what went to the stack is refused as a figure of the machine, and said where it is") {
  const auto refused = [](const std::string& key) {
    sim::Machine machine = shipped("z100");
    ProblemList problems("s.yaml");
    const std::vector<Node> figures{figure(key, "0.5")};
    set_figures(machine, figures, problems);
    try {
      problems.throw_if_any();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused("efficiencies.matmul_compute") ==
        "s.yaml: machine.efficiencies.matmul_compute: what kernels reach is their stack's; set "
        "stack.reached.matmul_compute");
  CHECK(refused("reached.all.overlap") ==
        "s.yaml: machine.reached.all.overlap: what kernels reach is their stack's; set stack.reached.overlap");
  CHECK(refused("efficiencies.dram_bandwidth") ==
        "s.yaml: machine.efficiencies.dram_bandwidth: is machine.sustained.dram_bandwidth now");
  CHECK(refused("stack.reached.overlap") ==
        "s.yaml: machine.stack.reached.overlap: a figure of the stack; set stack.reached.overlap");
}

constexpr const char* kScenario = R"(schema: dculab/scenario/1
question: q
model: smollm2-135m
machine: z100
)";

Scenario scenario_with(const std::vector<std::string>& changes) {
  Node document = parse_yaml("s.yaml", kScenario);
  for (const std::string& change : changes) set_override(document, parse_override(change));
  return read_scenario("s.yaml", document);
}

TEST_CASE("a scenario's stack is a name, or a map with figures, and another name keeps them") {
  CHECK(scenario_with({}).stack == "dculab");
  CHECK(scenario_with({"stack=vllm"}).stack == "vllm");
  for (const std::vector<std::string>& changes :
       {std::vector<std::string>{"stack=vllm", "stack.host.per_step=1 ms"},
        std::vector<std::string>{"stack.host.per_step=1 ms", "stack=vllm"},
        std::vector<std::string>{"stack={name: vllm, host.per_step: 1 ms}"}}) {
    const Scenario scenario = scenario_with(changes);
    CHECK(scenario.stack == "vllm");
    REQUIRE(scenario.stack_figures.size() == 1);
    CHECK(scenario.stack_figures.front().key == "host.per_step");
    CHECK(scenario.stack_figures.front().text == "1 ms");
  }
  CHECK(scenario_with({"stack.reached.overlap=0.5"}).stack == "dculab");
  CHECK_THROWS_WITH(scenario_with({"stack={name: vllm, reached: {overlap: 0.5}}"}),
                    ContainsSubstring("stack.reached: must be a figure with its unit"));
}

TEST_CASE("a figure of a stack is an axis of a sweep") {
  const Scenario scenario = scenario_with({"sweep={stack.host.per_step: [1 ms, 2 ms], stack: [dculab, vllm]}"});
  const std::vector<SweepPoint> points = sweep_points(scenario);
  REQUIRE(points.size() == 4);
  CHECK(points.front().scenario.stack == "dculab");
  CHECK(points.back().scenario.stack == "vllm");
  CHECK(points.back().scenario.stack_figures.front().text == "2 ms");
}

}  // namespace
}  // namespace dculab::config

// Who says what a stack reaches on a machine, and in which order they are believed.
#include "sim/hardware/reached.hpp"

#include "sim/hardware/figure.hpp"
#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

void say(Machine& machine, const std::string& stack, double share) {
  machine.reached[stack].matmul_compute = share;
  machine.sources["reached." + stack + ".matmul_compute"] = "measured: of " + stack;
}

Stack vllm() {
  Stack stack;
  stack.name = "vllm-dtk";
  stack.program = "vLLM";
  return stack;
}

Stack with_share(Stack stack, double share) {
  stack.reached.matmul_compute = share;
  stack.sources["reached.matmul_compute"] = "fitted: by its file";
  return stack;
}

TEST_CASE("a figure is of the nearest that states it: prior, all, stack file, program, stack") {
  Machine machine = mi50_like();
  CHECK(stack_on(machine, vllm()).reached.matmul_compute == Reached{}.matmul_compute);
  CHECK(stack_on(machine, vllm()).sources.empty());
  say(machine, "all", 0.6);
  CHECK(stack_on(machine, vllm()).reached.matmul_compute == 0.6);
  CHECK(stack_on(machine, vllm()).sources.at("reached.matmul_compute") == "measured: of all");
  const Stack stated = with_share(vllm(), 0.5);
  CHECK(stack_on(machine, stated).reached.matmul_compute == 0.5);
  CHECK(stack_on(machine, stated).sources.at("reached.matmul_compute") == "fitted: by its file");
  say(machine, "vllm", 0.4);  // in any case
  CHECK(stack_on(machine, stated).reached.matmul_compute == 0.4);
  say(machine, "vllm-dtk", 0.3);
  CHECK(stack_on(machine, stated).reached.matmul_compute == 0.3);
  CHECK(stack_on(machine, stated).sources.at("reached.matmul_compute") == "measured: of vllm-dtk");
  CHECK(stack_on(machine, stated).reached.overlap == Reached{}.overlap);
}

TEST_CASE("what our kernels reach is not what another program's do") {
  Machine machine = mi50_like();
  say(machine, "dculab", 0.9);
  CHECK(stack_on(machine, {}).reached.matmul_compute == 0.9);
  CHECK(stack_on(machine, vllm()).reached.matmul_compute == Reached{}.matmul_compute);
}

TEST_CASE("a figure without a source is not stated") {
  Machine machine = mi50_like();
  machine.reached["all"].attention_compute = 0.1;
  CHECK(stack_on(machine, {}).reached.attention_compute == Reached{}.attention_compute);
}

TEST_CASE("what a fit made of the stack stays with its machine") {
  Machine machine = mi50_like();
  machine.stack = vllm();
  machine.stack.reached.block_lookup = Seconds(3e-9);
  CHECK(keep_reached(machine, "block_lookup", "measured: 40 steps") == "reached.vllm-dtk.block_lookup");
  CHECK(*source_of(machine, "stack.reached.block_lookup") == "measured: 40 steps");
  CHECK(stack_on(machine, vllm()).reached.block_lookup == Seconds(3e-9));
  CHECK(stack_on(machine, {}).reached.block_lookup == Reached{}.block_lookup);
}

TEST_CASE("every figure of a stack is found under its key") {
  Machine machine = mi50_like();
  machine.stack.host_per_step = Seconds(1e-3);
  machine.stack.host_per_sequence = Seconds(1e-6);
  for (const std::string& key : stack_figures()) {
    CAPTURE(key);
    CHECK(figure_value(machine, key).has_value());
  }
  machine.stack.host_per_step.reset();
  for (const char* key : {"stack.host.per_step", "stack.reached.dram_bandwidth", "stack.name", "stack."})
    CHECK_FALSE(figure_value(machine, key).has_value());
}

TEST_CASE("another stack changes alike: to the same where it was the same, else in the same measure") {
  const Machine before = mi50_like();
  Machine after = before;
  after.stack.reached.overlap = 0.88;
  after.stack.reached.matmul_compute = 0.9;
  after.stack.kernels_per_op = 2;
  const Stack changed = changed_alike(with_share(vllm(), 0.5), before, after);
  CHECK(changed.reached.overlap == 0.88);
  CHECK(changed.reached.matmul_compute == Approx(0.6));
  CHECK(changed.kernels_per_op == 2);
  CHECK(changed_alike(with_share(vllm(), 0.95), before, after).reached.matmul_compute == 1);
}

}  // namespace
}  // namespace dculab::sim::test

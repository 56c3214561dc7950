// What must hold for energy and money, whatever the machine, the step and the deployment.
#include "sim/cost/energy.hpp"

#include "model/plan_step.hpp"
#include "sim/cost/token_price.hpp"
#include "sim/serving/simulated_server.hpp"
#include "tests/sim/random_cases.hpp"
#include "tests/sim/small_servers.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

constexpr Power kDrawn{.idle = Watts(90), .memory_bound = Watts(300), .compute_bound = Watts(400)};

[[nodiscard]] SimulatedServer powered(SimulatedServer server) {
  server.machine.power = kDrawn;
  server.machine.price_per_hour = 2.5;
  return server;
}

[[nodiscard]] StepPrice one_op(Seconds compute, Seconds memory) {
  OpPrice op;
  op.count = 3;
  op.seconds = Seconds(1);
  op.compute = compute;
  op.memory = memory;
  return {.seconds = Seconds(3), .host = {}, .sampling = {}, .ops = {op}};
}

TEST_CASE("an op draws what its busy resource draws, and no more than the limit", "[energy]") {
  Machine machine = mi50_like();
  machine.power = kDrawn;
  const auto watts = [&](double compute, double memory) {
    const StepPrice price = one_op(Seconds(compute), Seconds(memory));
    return (*kDrawn.idle + active_energy(machine, {}, price) / price.seconds).value();
  };
  CHECK(watts(0, 0) == Approx(90));
  CHECK(watts(0, 1) == Approx(300));
  CHECK(watts(1, 0) == Approx(400));
  CHECK(watts(1, 1) == Approx(400));
  CHECK(watts(0, 0.5) == Approx(195));
  CHECK(watts(0.5, 0.5) == Approx(350));
}

TEST_CASE("the power of a step lies between idle and compute-bound", "[energy]") {
  RandomCases random(11);
  for (int index = 0; index < kCases; ++index) {
    CAPTURE(index);
    Machine machine = random.machine();
    machine.power.idle = Watts(random.real(1, 200));
    machine.power.memory_bound = *machine.power.idle + Watts(random.real(0, 300));
    machine.power.compute_bound = *machine.power.memory_bound + Watts(random.real(0, 300));
    REQUIRE(problems(machine.power).empty());
    const ModelShape model = random.model();
    const StepPlan plan = plan_step(model, random.options(), random.batch());
    const StepPrice price = price_step(machine, plan);
    const StepCost cost = step_cost(machine, model, plan, price);
    REQUIRE(cost.energy);
    const Watts mean = *cost.energy / cost.devices / price.seconds;
    CHECK(mean >= *machine.power.idle * (1 - kRounding));
    CHECK(mean <= *machine.power.compute_bound * (1 + kRounding));
  }
}

TEST_CASE("the energy of a run is that of its steps and of the idle time between them", "[energy]") {
  const SimulatedServer server = powered(small_server());
  Joules active;
  const auto on_step = [&](const ServedStep& step, int) {
    active += active_energy(server.machine, step.plan, price_step(server.machine, step.plan));
  };
  const ServingRun run = simulate(server, poisson_requests(20, 2), {}, {.on_step = on_step});
  REQUIRE(run.energy);
  const Joules idle = *kDrawn.idle * run.metrics.duration();
  CHECK(run.busy < run.metrics.duration());
  CHECK(run.energy->value() == Approx((idle + active).value()).epsilon(1e-9));
}

TEST_CASE("a replica that does nothing draws idle power, and costs as much as one that works", "[energy]") {
  const SimulatedServer one = powered(small_server());
  SimulatedServer two = one;
  two.deployment.data_parallel_size = 2;
  const ServingRun alone = simulate(one, requests_of(1, 100, 20)), beside = simulate(two, requests_of(1, 100, 20));
  const Seconds duration = alone.metrics.duration();
  CHECK(beside.metrics.duration() == duration);
  CHECK((*beside.energy - *alone.energy).value() == Approx((*kDrawn.idle * duration).value()));
  const auto usd = [](const SimulatedServer& server) {
    return *usd_per_million_tokens(server.machine, server.deployment, 100);
  };
  CHECK(usd(two) == Approx(2 * usd(one)));
}

TEST_CASE("stages of a pipeline do the work of one device, and are idle meanwhile", "[energy]") {
  const SimulatedServer one = powered(linked_server());
  SimulatedServer stages = one;
  stages.deployment.pipeline_parallel_size = 2;
  const auto active = [](const SimulatedServer& server, double devices) {
    const ServingRun run = simulate(server, requests_of(1, 100, 20));
    return (*run.energy - devices * (*kDrawn.idle * run.metrics.duration())).value();
  };
  CHECK(active(stages, 2) == Approx(active(one, 1)).epsilon(1e-9));
}

TEST_CASE("all devices that share a layer count", "[energy]") {
  SimulatedServer shared = powered(linked_server());
  shared.deployment.tensor_parallel_size = 4;
  const ServingRun run = simulate(shared, requests_of(4, 100, 20));
  const double watts = run.energy->value() / run.metrics.duration().value();
  CHECK(machines_of(shared.machine, shared.deployment) == 4);
  CHECK(watts > 4 * kDrawn.idle->value());
  CHECK(watts <= 4 * kDrawn.compute_bound->value());
}

TEST_CASE("a step that reaches less draws as much power for longer", "[energy]") {
  const SimulatedServer server = powered(small_server());
  SimulatedServer slower = server;
  slower.step_scale = 1.5;
  const ServingRun run = simulate(server, requests_of(8, 100, 20)), late = simulate(slower, requests_of(8, 100, 20));
  CHECK(late.metrics.duration() > 1.4 * run.metrics.duration());
  const auto watts = [](const ServingRun& each) { return each.energy->value() / each.metrics.duration().value(); };
  CHECK(watts(late) == Approx(watts(run)).epsilon(0.01));
}

TEST_CASE("dollars for a million tokens are dollars for an hour of as many", "[energy]") {
  RandomCases random(12);
  for (int index = 0; index < kCases; ++index) {
    const double price = random.real(0.1, 10), devices = random.integer(1, 64), rate = random.real(1, 1e5);
    const double usd = usd_per_million_tokens(price, devices, rate);
    CHECK(usd * (rate * 3600 / 1e6) == Approx(price * devices));
  }
}

TEST_CASE("processes of a CPU share its power and its price", "[energy]") {
  Machine cpu = cpu_like();
  cpu.power = kDrawn;
  cpu.price_per_hour = 1;
  const Deployment shared{.tensor_parallel_size = 2, .data_parallel_size = 3};
  CHECK(machines_of(cpu, shared) == 3);
  Machine gpu = mi50_like();
  CHECK(machines_of(gpu, shared) == 6);
}

TEST_CASE("a machine without power or price has neither energy nor dollars", "[energy]") {
  SimulatedServer server = small_server();
  CHECK_FALSE(simulate(server, requests_of(1, 100, 5)).energy);
  CHECK_FALSE(usd_per_million_tokens(server.machine, server.deployment, 100));
  server.machine.power = {.idle = Watts(90), .memory_bound = {}, .compute_bound = Watts(400)};
  CHECK_FALSE(simulate(server, requests_of(1, 100, 5)).energy);
}

TEST_CASE("powers that are out of order are refused", "[energy]") {
  CHECK(problems(kDrawn).empty());
  CHECK(problems(Power{.idle = Watts(90), .memory_bound = {}, .compute_bound = {}}).empty());
  CHECK(problems(Power{.idle = Watts(90), .memory_bound = Watts(80), .compute_bound = Watts(400)}).size() == 1);
  CHECK(problems(Power{.idle = Watts(90), .memory_bound = {}, .compute_bound = Watts(80)}).size() == 1);
}

}  // namespace
}  // namespace dculab::sim::test

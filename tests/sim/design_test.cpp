// Machines as designs: what follows compute units, clock and channels, and that more of them is never slower.
#include "sim/hardware/design.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lower/lower.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/figure_scale.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/figure.hpp"
#include "sim/memory/bandwidth.hpp"
#include "tests/sim/random_cases.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

void derive(Machine& machine, const std::string& key, Follows follows) {
  Derivation derivation{follows, 1, true};
  derivation.rate = *figure_value(machine, key) / derived_value(machine, key, derivation);
  machine.derivations[key] = derivation;
}

// The machine with everything that can follow following, as a file's figures do.
Machine as_design(Machine machine, int channels) {
  for (const auto& [dtype, peak] : machine.peaks) {
    const std::string key = "peaks." + std::string(name(dtype));
    derive(machine, key + ".vector", Follows::units_and_clock);
    if (peak.matrix) derive(machine, key + ".matrix", Follows::units_and_clock);
  }
  double clocks = 0;  // DRAM lies behind the last cache, which is in the clock's domain
  for (std::size_t index = 0; index < machine.memory.size(); ++index) {
    MemoryLevel& level = machine.memory[index];
    const bool dram = index + 1 == machine.memory.size();
    const std::string path = "memory." + level.name + ".";
    if (level.scope == Scope::device) level.channels = channels;
    derive(machine, path + "bandwidth",
           dram                           ? Follows::channels
           : level.scope == Scope::device ? Follows::channels_and_clock
                                          : Follows::units_and_clock);
    if (!dram) derive(machine, path + "latency", Follows::clock);
    if (dram) machine.derivations[path + "latency"] = {Follows::clock, clocks, true};
    clocks = machine.derivations.at(path + "latency").rate;
  }
  return machine;
}

Machine changed(Machine machine, const std::string& key, double factor) {
  REQUIRE(scale_figure(machine, key, factor));
  REQUIRE(problems(machine).empty());
  return machine;
}

struct DesignCase {
  Machine machine;
  StepPlan plan;
  StepPrice price;
};

template <class Check>
void for_random_designs(unsigned seed, Check&& check) {
  RandomCases random(seed);
  for (int index = 0; index < kCases; ++index) {
    CAPTURE(index);
    DesignCase each{as_design(random.machine(), random.integer(1, 64)), {}, {}};
    REQUIRE(problems(each.machine).empty());
    const ModelShape model = random.model();
    const EngineOptions options = random.options();
    each.plan = plan_step(model, options, random.batch());
    each.price = price_step(each.machine, each.plan);
    check(each, random);
  }
}

// Fewer waves on a SIMD hide less of what each of them waits for: at the least nothing, so that memory, latency and
// arithmetic take their turns.
constexpr double kNothingHidden = 3;

bool hides_by_waves(const DesignCase& each, const Op& op) {
  return lower::lower(op, each.plan, each.machine).overlap == lower::Overlap::waves;
}

void check_no_op_slower(const DesignCase& before, const Machine& better) {
  const StepPrice after = price_step(better, before.plan);
  const bool more_units = better.compute_units > before.machine.compute_units;
  double most = 1;
  for (std::size_t op = 0; op < before.plan.ops.size(); ++op) {
    CAPTURE(before.plan.ops[op].name);
    const double allowed = more_units && hides_by_waves(before, before.plan.ops[op]) ? kNothingHidden : 1;
    most = std::max(most, allowed);
    CHECK(after.ops[op].seconds <= before.price.ops[op].seconds * (allowed + kRounding));
  }
  CHECK(after.seconds <= before.price.seconds * (most + kRounding));
}

std::vector<std::string> shared_levels(const Machine& machine, const char* figure) {
  std::vector<std::string> keys;
  for (const MemoryLevel& level : machine.memory)
    if (level.scope == Scope::device) keys.push_back("memory." + level.name + "." + figure);
  return keys;
}

TEST_CASE("a higher clock is never slower") {
  for_random_designs(31, [](const DesignCase& each, RandomCases& random) {
    check_no_op_slower(each, changed(each.machine, "clock", random.real(1, 4)));
  });
}

TEST_CASE("more channels are never slower") {
  for_random_designs(32, [](const DesignCase& each, RandomCases& random) {
    for (const std::string& key : shared_levels(each.machine, "channels"))
      check_no_op_slower(each, changed(each.machine, key, random.real(1, 8)));
  });
}

TEST_CASE("a larger shared cache, and more bandwidth of its and of DRAM, are never slower") {
  for_random_designs(33, [](const DesignCase& each, RandomCases& random) {
    for (const char* figure : {"size", "bandwidth"})
      for (const std::string& key : shared_levels(each.machine, figure))
        check_no_op_slower(each, changed(each.machine, key, random.real(1, 16)));
  });
}

TEST_CASE("all of that at once is never slower") {
  for_random_designs(34, [](const DesignCase& each, RandomCases& random) {
    Machine better = changed(each.machine, "clock", random.real(1, 4));
    for (const char* figure : {"channels", "size", "bandwidth"})
      for (const std::string& key : shared_levels(better, figure)) better = changed(better, key, random.real(1, 4));
    check_no_op_slower(each, better);
  });
}

// How much of the traffic comes from which level depends on the units: see the next case. Here it cannot: caches that
// all units share answer every repeated request.
TEST_CASE("more compute units are never slower where they leave the traffic alone") {
  for_random_designs(35, [](const DesignCase& random_case, RandomCases& random) {
    DesignCase each = random_case;
    for (MemoryLevel& level : each.machine.memory) {
      level.scope = Scope::device;
      level.size = Bytes(1e15);
    }
    each.machine = as_design(each.machine, 16);
    each.price = price_step(each.machine, each.plan);
    check_no_op_slower(each, changed(each.machine, "compute_units", random.real(1, 8)));
  });
}

// The largest growth of an op's bytes at any level, and of the mean latency that follows from them.
double traffic_growth(const Machine& machine, const OpPrice& before, const OpPrice& after) {
  double growth = std::max(1.0, after.effective_latency / before.effective_latency);
  for (std::size_t level = 0; level < machine.memory.size(); ++level)
    if (before.bytes[level] > Bytes{}) growth = std::max(growth, after.bytes[level] / before.bytes[level]);
  return growth;
}

// A GPU may split a product along k differently for more units, and then both add up and start otherwise.
bool is_split_otherwise(const Machine& machine, const OpPrice& before, const OpPrice& after) {
  return machine.kind == lower::DeviceKind::gpu && before.parallel.workgroups != after.parallel.workgroups;
}

// Why more units can be slower, in this law as in a real device: a byte that workgroups share is fetched into more of
// the units' own caches, and more workgroups in flight have more of the shared one. Nothing else of an op gets slower.
TEST_CASE("more compute units slow an op down by no more than its traffic grows") {
  int slower = 0, ops = 0;
  for_random_designs(36, [&](const DesignCase& each, RandomCases& random) {
    const Machine more = changed(each.machine, "compute_units", random.real(1, 8));
    const StepPrice step = price_step(more, each.plan);
    for (std::size_t op = 0; op < each.plan.ops.size(); ++op) {
      const OpPrice &before = each.price.ops[op], &after = step.ops[op];
      if (is_split_otherwise(each.machine, before, after)) continue;
      CAPTURE(each.plan.ops[op].name);
      const double growth = traffic_growth(each.machine, before, after);
      if (hides_by_waves(each, each.plan.ops[op])) {
        CHECK(after.seconds <= before.seconds * growth * kNothingHidden);
        continue;
      }
      CHECK(after.seconds <= before.seconds * growth * (1 + kRounding));
      ++ops;
      slower += after.seconds > before.seconds * (1 + kRounding) ? 1 : 0;
      if (before.parallel.team != after.parallel.team) continue;  // a CPU's caller alone, or all its threads
      CHECK(after.compute <= before.compute * (1 + kRounding));
      CHECK(after.lookups <= before.lookups * (1 + kRounding));
      CHECK(after.launch <= before.launch * (1 + kRounding));
      CHECK(after.parallel.active_units >= before.parallel.active_units * (1 - kRounding));
      CHECK(after.parallel.concurrent >= before.parallel.concurrent * (1 - kRounding));
      for (std::size_t level = 0; level < each.machine.memory.size(); ++level)
        CHECK(after.bandwidth[level] * growth >= before.bandwidth[level] * (1 - kRounding));
    }
  });
  CHECK(ops > 10 * kCases);
  CHECK(slower < 0.1 * ops);  // an exception, not the rule
}

// Wave quantisation: 60 workgroups on 60 units take one round, on 61 too; on 40 they take two, of which the second is
// half empty. A unit draws alone what it drew among 60, so that the 61st takes nothing from the others.
TEST_CASE("a unit that is idle takes no bandwidth from those that work") {
  const Machine machine = as_design(mi50_like(), 16);
  Machine more = machine;
  more.compute_units = 120;
  follow(more, "compute_units", 60);
  CHECK(sharing_units(machine) == 60);
  CHECK(sharing_units(more) == 60);
  const std::size_t dram = machine.memory.size() - 1;
  CHECK(deliverable(more, dram, 60) == deliverable(machine, dram, 60));
  CHECK(deliverable(more, dram, 120) == deliverable(machine, dram, 60));
  CHECK(deliverable(more, 0, 60) == deliverable(machine, 0, 60));  // of their own caches
  Machine fewer = machine;
  fewer.compute_units = 30;
  follow(fewer, "compute_units", 60);
  CHECK(deliverable(fewer, dram, 30) == deliverable(machine, dram, 60));
}

TEST_CASE("figures keep their share of what they follow, and stay where nothing changes") {
  const Machine machine = as_design(mi50_like(), 16);
  Machine same = machine;
  follow(same, "clock", machine.clock.value());
  CHECK(same.peaks.at(Dtype::f16).vector == machine.peaks.at(Dtype::f16).vector);
  const Machine faster = changed(machine, "clock", 1.5);
  for (const auto& [key, derivation] : machine.derivations) {
    INFO(key);
    const double share = *figure_value(machine, key) / derived_value(machine, key, derivation);
    if (key != "memory.DRAM.latency")
      CHECK(*figure_value(faster, key) / derived_value(faster, key, derivation) == Approx(share));
  }
  const double beyond = machine.dram().latency.value() - machine.memory[1].latency.value();
  CHECK(faster.dram().latency.value() - faster.memory[1].latency.value() == Approx(beyond));
}

TEST_CASE("a doubted clock leaves what was published, another clock does not") {
  Machine machine = as_design(mi50_like(), 16);
  machine.derivations.at("peaks.f32.vector").is_stated = false;
  Machine doubted = machine;
  REQUIRE(scale_figure(doubted, "clock", 1.1, Following::unstated));
  CHECK(doubted.peaks.at(Dtype::f16).vector == machine.peaks.at(Dtype::f16).vector);
  CHECK(doubted.peaks.at(Dtype::f32).vector.value() == Approx(1.1 * machine.peaks.at(Dtype::f32).vector.value()));
  CHECK(changed(machine, "clock", 1.1).peaks.at(Dtype::f16).vector.value() ==
        Approx(1.1 * machine.peaks.at(Dtype::f16).vector.value()));
}

}  // namespace
}  // namespace dculab::sim::test

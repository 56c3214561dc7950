// What published points teach of machines and software, on points made with known figures; the naive roofline by hand.
#include "sim/study/point_calibration.hpp"

#include <cmath>
#include <deque>

#include "sim/study/naive_roofline.hpp"
#include "sim/study/serving_recipe.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim {
namespace {

Server server_of(const Machine& machine) { return {.machine = machine, .model = test::llama_3_8b(), .options = {}}; }

// Points of machines m0, m1, ... that are all alike in their files.
struct Points {
  Machine file = test::a100_like();
  std::deque<Recipe> recipes;
  std::vector<MeasuredPoint> points;

  Points() { file.overheads.host_per_step = Seconds(300e-6); }

  // Twelve decode rates of `software` on `machine`, as `truth` takes them.
  void add(const std::string& machine, const std::string& software, const Machine& truth) {
    for (const int batch : {1, 4, 16, 64})
      for (const int context : {256, 1024, 4096}) {
        recipes.push_back(decode(server_of(file), batch, context, context));
        const Recipe& recipe = recipes.back();
        points.push_back({{machine, software, software}, "decode_rate", &file, &recipe, price_recipe(truth, recipe)});
      }
  }
};

Machine with_host(Machine machine, double seconds) {
  machine.overheads.host_per_step = Seconds(seconds);
  return machine;
}

TEST_CASE("a planted host time of one program is found, and expected of it on a machine not seen") {
  Points known;
  for (const char* machine : {"m0", "m1", "m2"}) {
    known.add(machine, "slow", with_host(known.file, 3e-3));
    known.add(machine, "quick", with_host(known.file, 300e-6));
  }
  const PointCalibration calibration(known.points);
  const Recipe asked = decode(server_of(known.file), 8, 2048, 2048);
  for (const char* machine : {"m1", "unseen"}) {
    const PointPrediction slow = calibration.predict(known.file, {machine, "slow", "slow"}, "decode_rate", asked);
    const PointPrediction quick = calibration.predict(known.file, {machine, "quick", "quick"}, "decode_rate", asked);
    CHECK(slow.time / price_recipe(with_host(known.file, 3e-3), asked) == Approx(1).epsilon(0.03));
    CHECK(quick.time / price_recipe(with_host(known.file, 300e-6), asked) == Approx(1).epsilon(0.03));
    CHECK(slow.trust.low < slow.time);
    CHECK(slow.time < slow.trust.high);
  }
}

// What two machines have in common cannot be told from what three programs have in common; their ratio can.
TEST_CASE("a planted bandwidth of one machine tells it from another with a program not seen") {
  Points known;
  Machine worn = known.file;
  worn.sustained.dram_bandwidth = 0.6;
  for (const char* software : {"one", "two", "three"}) {
    known.add("worn", software, worn);
    known.add("fresh", software, known.file);
  }
  const PointCalibration calibration(known.points);
  const Recipe asked = decode(server_of(known.file), 8, 2048, 2048);
  const auto time_on = [&](const char* machine) {
    return calibration.predict(known.file, {machine, "four", "four"}, "decode_rate", asked).time;
  };
  const double planted = price_recipe(worn, asked) / price_recipe(known.file, asked);
  CHECK(planted > 1.2);
  CHECK(time_on("worn") / time_on("fresh") == Approx(planted).epsilon(0.05));
}

TEST_CASE("what was not seen is less certain, and says so") {
  Points known;
  for (const char* machine : {"m0", "m1", "m2"}) known.add(machine, "engine", with_host(known.file, 1e-3));
  const PointCalibration calibration(known.points);
  const Recipe between = decode(server_of(known.file), 8, 2048, 2048);
  const Recipe beyond = decode(server_of(known.file), 8, 8000, 8000);
  const auto trust = [&](const char* machine, const char* engine, const Recipe& recipe) {
    return calibration.predict(known.file, {machine, engine, engine}, "decode_rate", recipe).trust;
  };
  CHECK(trust("m0", "engine", between).basis == Basis::interpolated);
  CHECK(trust("m0", "engine", beyond).basis == Basis::extrapolated);
  CHECK(trust("m9", "engine", between).basis == Basis::extrapolated);
  CHECK(trust("m0", "other", between).basis == Basis::extrapolated);
  CHECK(recipe_confidence(known.file, between, Seconds(1)).basis == Basis::priors);
}

TEST_CASE("no prediction and no interval reaches below the floor") {
  Points known;
  known.add("m0", "engine", known.file);
  const PointCalibration calibration(known.points);
  for (const Recipe& recipe : known.recipes) {
    const PointPrediction predicted = calibration.predict(known.file, {"m7", "other", "other"}, "decode_rate", recipe);
    CHECK(predicted.time >= recipe_floor(known.file, recipe));
    CHECK(predicted.trust.low >= recipe_floor(known.file, recipe));
  }
}

TEST_CASE("the naive roofline is the larger of two quotients, op by op") {
  const Machine machine = test::a100_like();
  Op op;
  op.flops = FlopCount(3.12e12);
  op.activation_dtype = Dtype::f16;
  op.add({OperandRole::weight, Bytes(2.039e9), Bytes()});
  const double peak = machine.peaks.at(Dtype::f16).matrix->value();
  CHECK(naive_roofline(machine, op).value() ==
        Approx(std::max(3.12e12 / peak, 2.039e9 / machine.dram().bandwidth.value())));
  op.flops = FlopCount(1);
  CHECK(naive_roofline(machine, op) == op.unique_bytes() / machine.dram().bandwidth);
  Recipe recipe;
  op.count = 3;
  recipe.steps.resize(2);
  recipe.steps[0].plan.ops.push_back(op);
  Op exchange = op;
  exchange.devices = 2;  // not seen
  recipe.steps[1].plan.ops.push_back(exchange);
  recipe.steps[1].plan.ops.push_back(op);
  recipe.steps[1].times = 5;
  CHECK(naive_roofline(machine, recipe).value() == Approx(18 * naive_roofline(machine, op).value()));
}

TEST_CASE("the naive roofline is of the fused plan, whatever an engine moves beyond it") {
  const Machine machine = test::a100_like();
  Machine unfused = machine;
  unfused.stack.kernels.unfused = {
      .activation_scale = 4, .bytes_per_score = 16, .bytes_per_widened_weight = 4, .widened_from_rows = 65};
  const Recipe recipe = prefill(server_of(machine), 512);
  CHECK(price_recipe(unfused, recipe) > price_recipe(machine, recipe));
  CHECK(naive_roofline(unfused, recipe) == naive_roofline(machine, recipe));
}

}  // namespace
}  // namespace dculab::sim

// What published points teach of machines and software, on points made with known figures; the naive roofline by hand.
#include "sim/study/point_calibration.hpp"

#include <cmath>
#include <deque>

#include "lower/flash_attention/kernels.hpp"
#include "lower/gemm/kernels.hpp"
#include "model/plan_step.hpp"
#include "sim/study/naive_roofline.hpp"
#include "sim/study/serving_run.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim {
namespace {

Server default_server(const Machine& machine, const ModelShape& model = test::llama_3_8b()) {
  return {.machine = machine, .model = model, .options = {}};
}

Machine with_host(Machine machine, double seconds) {
  machine.overheads.host_per_step = Seconds(seconds);
  return machine;
}

// Points of machines m0, m1, ... that are all alike in their files.
struct Points {
  ModelShape model = test::llama_3_8b();  // of the points that come next
  std::deque<Machine> machines;
  std::deque<MeasuredRun> measured_runs;
  std::vector<MeasuredPoint> points;

  static Machine file(const std::string& machine, const std::string& program) {
    Machine file = with_host(test::a100_like(), 300e-6);
    file.name = machine;
    file.vendor = lower::Vendor::nvidia;
    file.stack.name = program + " 1";
    file.stack.program = program;
    file.stack.kernels.matmul = {&lower::gemm::kCublas};
    file.stack.kernels.attention_prefill =
        file.stack.kernels.attention_decode = {&lower::flash_attention::kFlashAttention2};
    return file;
  }

  // Twelve decode rates of `program` on `machine`, as `truth` takes them, `factor` times as long.
  void add(const std::string& machine, const std::string& program, const Machine& truth,
           const std::string& source = "a paper", double factor = 1) {
    machines.push_back(file(machine, program));
    for (const int batch : {1, 4, 16, 64})
      for (const int context : {256, 1024, 4096}) {
        measured_runs.push_back(decode(default_server(machines.back(), model), batch, context, context));
        const MeasuredRun& measured_run = measured_runs.back();
        points.push_back({source, "", &machines.back(), &measured_run, factor * price_run(truth, measured_run), 0});
      }
  }

  // Four of its attention kernels, the shortest last.
  void add_kernels(const std::string& machine, const std::string& program, const Machine& truth,
                   bool holds_call = false) {
    machines.push_back(file(machine, program));
    for (const int context : {1024, 512, 256, 128}) {
      StepPlan plan = plan_step(test::llama_3_8b(), {}, uniform_batch(Phase::decode, 1, context));
      std::erase_if(plan.ops, [](const Op& op) { return op.kind != OpKind::attention_decode; });
      measured_runs.push_back(kernel_run(plan));
      measured_runs.back().holds_call = holds_call;
      const MeasuredRun& measured_run = measured_runs.back();
      points.push_back({"a kernel's paper", "", &machines.back(), &measured_run, price_run(truth, measured_run), 0});
    }
  }
};

// `machine` as learned, running `program`.
Machine learned(const PointCalibration& calibration, const std::string& machine, const std::string& program) {
  const Machine file = Points::file(machine, program);
  Machine result = calibration.device(file);
  result.stack = calibration.anywhere(file.stack);
  result.stack.reached = calibration.reached(file);
  return result;
}

TEST_CASE("a planted host time of one program is found, and expected of it on a machine not seen") {
  Points known;
  const Machine file = Points::file("m0", "quick");
  for (const char* machine : {"m0", "m1", "m2"}) {
    known.add(machine, "slow", with_host(file, 3e-3));
    known.add(machine, "quick", with_host(file, 300e-6));
  }
  const PointCalibration calibration(known.points);
  const MeasuredRun asked = decode(default_server(file), 8, 2048, 2048);
  for (const char* machine : {"m1", "unseen"}) {
    CAPTURE(machine);
    for (const auto& [program, host] : {std::pair{"slow", 3e-3}, {"quick", 300e-6}}) {
      const Seconds time = price_run(learned(calibration, machine, program), asked);
      CHECK(time / price_run(with_host(file, host), asked) == Approx(1).epsilon(0.03));
    }
  }
}

// What two machines have in common cannot be told from what three programs have in common; their ratio can.
TEST_CASE("a planted bandwidth of one machine tells it from another with a program not seen") {
  Points known;
  const Machine file = Points::file("fresh", "one");
  Machine worn = file;
  worn.sustained.dram_bandwidth = 0.66;
  for (const char* program : {"one", "two", "three"}) {
    known.add("worn", program, worn);
    known.add("fresh", program, file);
  }
  const PointCalibration calibration(known.points);
  const MeasuredRun asked = decode(default_server(file), 8, 2048, 2048);
  const double planted = price_run(worn, asked) / price_run(file, asked);
  CHECK(planted > 1.2);
  const double found =
      price_run(learned(calibration, "worn", "four"), asked) / price_run(learned(calibration, "fresh", "four"), asked);
  // Not all of it, since so slow a memory is not expected of one machine.
  CHECK(found < 1.02 * planted);
  CHECK(std::log(found) > 0.66 * std::log(planted));
}

// Kernels timed one by one say nothing of the steps in which they run.
TEST_CASE("what a call adds where each is timed alone is no launch of a step") {
  Points known;
  const Machine file = Points::file("m0", "engine");
  Machine timed = file;
  timed.overheads.timed_call = Seconds(12e-6);
  known.add("m0", "engine", file);
  known.add_kernels("m0", "engine", timed, true);
  CHECK(run_bound(timed, known.measured_runs.back()) == "call");
  const Machine found = learned(PointCalibration(known.points), "m0", "engine");
  CHECK(found.overheads.timed_call.value() == Approx(12e-6).epsilon(0.15));
  CHECK(found.overheads.kernel_launch.value() == Approx(file.overheads.kernel_launch.value()).epsilon(0.05));
  const MeasuredRun step = decode(default_server(file), 1, 256, 256);
  CHECK(price_run(timed, step) == price_run(file, step));
}

TEST_CASE("a program that launches more kernels than the plan counts is told from a slow launch") {
  Points known;
  Machine busy = Points::file("m0", "busy");
  busy.stack.reached.counted_kernels = 0.3;
  // By models of few layers and of many: with a given number launches are as good as the host's time of a step.
  for (const int layers : {4, 16, 64}) {
    known.model = test::tiny_llama();
    known.model.layers.assign(layers, 0);
    known.add("m0", "busy", busy);
    known.add("m0", "spare", Points::file("m0", "spare"));
  }
  const PointCalibration calibration(known.points);
  CHECK(learned(calibration, "m2", "busy").stack.reached.counted_kernels < 0.5);
  CHECK(learned(calibration, "m2", "spare").stack.reached.counted_kernels > 0.85);
}

TEST_CASE("kernels that were timed on their own tell nothing of what a program launches beside them") {
  Points known;
  Machine busy = Points::file("m0", "busy");
  busy.stack.reached.counted_kernels = 0.3;
  busy.stack.kernels_per_op = 2;
  known.add_kernels("m0", "busy", busy);
  CHECK(price_run(busy, known.measured_runs.back()) ==
        price_run(Points::file("m0", "busy"), known.measured_runs.back()));
  CHECK(learned(PointCalibration(known.points), "m0", "busy").stack.reached.counted_kernels == 1);
}

TEST_CASE("points tell of figures that their times depend on, where they were measured") {
  Points known;
  const Machine file = Points::file("m0", "engine");
  known.add("m0", "engine", file);
  const PointCalibration calibration(known.points);
  const auto reported = [&](const Machine& machine, std::string_view key) {
    return calibration.tell(machine, *std::ranges::find(parameters(), key, &Parameter::key));
  };
  CHECK(reported(file, "sustained.dram_bandwidth"));
  CHECK(reported(file, "stack.reached.overlap"));
  CHECK_FALSE(reported(file, "sustained.peer_link"));
  CHECK(reported(Points::file("m0", "another"), "sustained.dram_bandwidth"));
  CHECK_FALSE(reported(Points::file("m0", "another"), "stack.reached.overlap"));
  CHECK_FALSE(reported(Points::file("m1", "engine"), "sustained.dram_bandwidth"));
}

TEST_CASE("how one source measured moves no machine and no program of another") {
  const Machine file = Points::file("m0", "engine");
  const MeasuredRun asked = decode(default_server(file), 8, 2048, 2048);
  const auto moved_by = [&](double factor) {
    Points known;
    for (const char* machine : {"m0", "m1", "m2"})
      known.add(machine, "engine", file, std::string("a paper on ") + machine);
    known.add("m3", "engine", file, "a contest at another clock", factor);
    const PointCalibration calibration(known.points);
    return price_run(learned(calibration, "m1", "engine"), asked) / price_run(file, asked);
  };
  CHECK(moved_by(1.0) == Approx(1).epsilon(0.02));
  CHECK(moved_by(0.8) == Approx(1).epsilon(0.04));
}

TEST_CASE("what was not seen has a wider interval") {
  Points known;
  // Machines whose bandwidth scatters: each is predicted less well without its own points.
  for (const auto& [machine, share] : {std::pair{"m0", 0.95}, {"m1", 0.75}, {"m2", 0.6}, {"m3", 0.85}}) {
    Machine truth = with_host(Points::file(machine, "engine"), 1e-3);
    truth.sustained.dram_bandwidth = share;
    known.add(machine, "engine", truth, std::string("a paper on ") + machine);
    known.add(machine, "engine", truth, std::string("another on ") + machine);
  }
  const PointCalibration calibration(known.points);
  const auto factor = [&](const Machine& machine) {
    return calibration.intervals(machine).factors.at(PriceKind::step);
  };
  const double seen = factor(Points::file("m0", "engine"));
  CHECK(seen >= kLeastFactor);
  CHECK(factor(Points::file("m9", "engine")) > 1.05 * seen);
  Machine elsewhere = Points::file("m9", "other");
  elsewhere.vendor = lower::Vendor::hygon;
  CHECK(factor(elsewhere) >= factor(Points::file("m9", "engine")));
  CHECK(calibration.intervals(Points::file("m0", "engine")).rows == 24);
  CHECK(calibration.intervals(Points::file("m0", "other")).rows == 0);
  CHECK(calibration.has_seen(lower::Vendor::nvidia));
  CHECK_FALSE(calibration.has_seen(lower::Vendor::amd));
}

TEST_CASE("an interval is of the nearest stack that its machine says something of, and not below the floor") {
  Machine machine = Points::file("m0", "engine");
  const MeasuredRun asked = decode(default_server(machine), 8, 2048, 2048);
  CHECK(run_confidence(machine, asked, Seconds(1)).basis == Basis::priors);
  const auto all = [](double factor) {
    std::map<PriceKind, double> factors;
    for (const auto& [name, kind] : kPriceKinds) factors[kind] = factor;
    return factors;
  };
  machine.calibration.emplace();
  machine.calibration->intervals = {{"all", {0, all(3)}}, {"engine", {0, all(2)}}, {"engine 1", {12, all(1.5)}}};
  const Seconds time = price_run(machine, asked);
  CHECK(run_confidence(machine, asked, time).high / time == Approx(1.5));
  CHECK(run_confidence(machine, asked, time).basis == Basis::interpolated);
  machine.stack.name = "engine 2";
  CHECK(run_confidence(machine, asked, time).high / time == Approx(2));
  CHECK(run_confidence(machine, asked, time).basis == Basis::extrapolated);
  machine.stack.name = machine.stack.program = "other";
  CHECK(run_confidence(machine, asked, time).high / time == Approx(3));
  const Seconds floor = run_floor(machine, asked);
  CHECK(run_confidence(machine, asked, 1.1 * floor).low == floor);
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
  MeasuredRun measured_run;
  op.count = 3;
  measured_run.steps.resize(2);
  measured_run.steps[0].plan.ops.push_back(op);
  Op exchange = op;
  exchange.devices = 2;  // not seen
  measured_run.steps[1].plan.ops.push_back(exchange);
  measured_run.steps[1].plan.ops.push_back(op);
  measured_run.steps[1].times = 5;
  CHECK(naive_roofline(machine, measured_run).value() == Approx(18 * naive_roofline(machine, op).value()));
}

TEST_CASE("the naive roofline is of the fused plan, whatever an engine moves beyond it") {
  const Machine machine = test::a100_like();
  Machine unfused = machine;
  unfused.stack.kernels.unfused = {
      .activation_scale = 4, .bytes_per_score = 16, .bytes_per_widened_weight = 4, .widened_from_rows = 65};
  const MeasuredRun measured_run = prefill(default_server(machine), 512);
  CHECK(price_run(unfused, measured_run) > price_run(machine, measured_run));
  CHECK(naive_roofline(unfused, measured_run) == naive_roofline(machine, measured_run));
}

}  // namespace
}  // namespace dculab::sim

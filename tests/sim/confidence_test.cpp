// How far a prediction is trusted: intervals by hand, from priors and from a calibration.
#include "sim/calibration/confidence.hpp"

#include <cmath>

#include "model/plan_step.hpp"
#include "sim/calibration/floor_check.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/sim/random_cases.hpp"
#include "tests/sim/synthetic_traces.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

struct PredictedStep {
  TraceStep step;
  StepPlan plan;
  Seconds predicted;
  Confidence trust;
};

PredictedStep trust_in(const Machine& machine, const TraceStep& step) {
  PredictedStep result{step, plan_step(step.model, step.options, step.batch), {}, {}};
  result.predicted = price_step(machine, result.plan).seconds;
  result.trust = confidence(machine, step.model, step.options, result.plan, result.predicted);
  return result;
}

Machine calibrated_machine(double factor, const std::vector<TraceStep>& steps) {
  Machine machine = mi50_like();
  machine.calibration = Calibration{.held_out_steps = 20,
                                    .coverage = 0.9,
                                    .interval_factor = factor,
                                    .domain = calibrated_domain(features_of(steps)),
                                    .formats = calibrated_formats(features_of(steps))};
  return machine;
}

TEST_CASE("what every prior contributes adds up as variances") {
  const Machine machine = mi50_like();
  CHECK(prior_log_sigma(machine, [](const Machine&) { return Seconds(1); }) == Approx(0.15));
  // time ~ 1 / bandwidth share, whose prior is 0.15 wide
  const auto streaming = [](const Machine& moved) { return Seconds(1) / moved.sustained.dram_bandwidth; };
  CHECK(prior_log_sigma(machine, streaming) == Approx(std::sqrt(2 * 0.15 * 0.15)));
  const auto square = [](const Machine& moved) { return Seconds(std::pow(moved.stack.reached.matmul_compute, -2)); };
  CHECK(prior_log_sigma(machine, square) == Approx(std::hypot(0.15, 2 * 0.30)));
}

TEST_CASE("without traces an interval is that of the priors") {
  const Machine machine = mi50_like();
  const PredictedStep each = trust_in(machine, make_step(llama_2_7b(), Phase::decode, 4, 1000));
  CHECK(each.trust.basis == Basis::priors);
  const auto time = [&each](const Machine& moved) { return price_step(moved, each.plan).seconds; };
  const double factor = std::exp(kNormalQuantile95 * prior_log_sigma(machine, time));
  CHECK((each.trust.high / each.predicted) == Approx(factor));
  CHECK(factor > std::exp(kNormalQuantile95 * kModelLogSigma));
}

TEST_CASE("the features of a step and the box around several") {
  TraceStep step = make_step(llama_3_8b(), Phase::decode, 1, 10, 32);
  step.batch.sequences.push_back({1, Phase::decode, 29, 1, true});
  const auto sizes = step_features(step.model, step.options, step.batch).sizes;
  CHECK(sizes.at("new_tokens") == 2);
  CHECK(sizes.at("context_tokens") == 30);
  CHECK(sizes.at("sequences") == 2);
  CHECK(sizes.at("kv_heads") == 8);
  CHECK(sizes.at("block_size") == 32);
  CHECK(sizes.at("weight_bytes") == weight_footprint(step.model, step.options.weights).value());

  const std::vector<TraceStep> steps{step, make_step(llama_3_8b(), Phase::prefill, 1, 700, 8)};
  const auto domain = calibrated_domain(features_of(steps));
  CHECK(domain.at("new_tokens").low == 2);
  CHECK(domain.at("new_tokens").high == 700);
  CHECK(domain.at("block_size").low == 8);
  CHECK(domain.at("block_size").high == 32);
}

TEST_CASE("inside the calibrated domain the factor holds, outside its square, and it is said") {
  const std::vector<TraceStep> steps{make_step(llama_2_7b(), Phase::decode, 1, 100, 1),
                                     make_step(llama_2_7b(), Phase::decode, 16, 2000, 64)};
  const Machine machine = calibrated_machine(1.2, steps);
  for (const TraceStep& step : {steps[0], steps[1], make_step(llama_2_7b(), Phase::decode, 8, 700, 16)}) {
    const PredictedStep within = trust_in(machine, step);
    CHECK(within.trust.basis == Basis::interpolated);
    CHECK((within.trust.high / within.predicted) == Approx(1.2));
    CHECK((within.predicted / within.trust.low) == Approx(1.2));
  }
  for (const TraceStep& step :
       {make_step(llama_2_7b(), Phase::decode, 17, 700, 16), make_step(llama_2_7b(), Phase::decode, 8, 2001, 16),
        make_step(llama_2_7b(), Phase::decode, 8, 700, 128),
        make_step(with_kv_heads(llama_2_7b(), 8), Phase::decode, 8, 700, 16),
        make_step(llama_3_8b(), Phase::decode, 8, 700, 16)}) {
    const PredictedStep beyond = trust_in(machine, step);
    CHECK(beyond.trust.basis == Basis::extrapolated);
    CHECK((beyond.trust.high / beyond.predicted) == Approx(1.44));
  }
}

TEST_CASE("beyond what was calibrated on an interval is no wider than that of the priors") {
  const TraceStep seen = make_step(llama_2_7b(), Phase::decode, 1, 100, 1);
  const TraceStep beyond = make_step(llama_2_7b(), Phase::decode, 8, 2001, 16);
  const auto factor_of = [&](const Machine& machine) {
    const PredictedStep each = trust_in(machine, beyond);
    return each.trust.high / each.predicted;
  };
  const double priors = factor_of(mi50_like());
  CHECK(factor_of(calibrated_machine(0.9 * priors, {seen})) == Approx(priors));
  CHECK(factor_of(calibrated_machine(2 * priors, {seen})) == Approx(2 * priors));  // never narrower than inside
}

TEST_CASE("a format or policy that no calibrating step had is extrapolated, whatever its sizes") {
  TraceStep plain = make_step(llama_3_8b(), Phase::decode, 8, 700);
  TraceStep quantized = plain;
  quantized.options.weights = {Dtype::int4, 128};
  quantized.options.activations = ActivationMode::int8;
  quantized.options.kv_cache_dtype = Dtype::fp8_e4m3;
  Machine machine = calibrated_machine(1.2, {plain, quantized});
  machine.calibration->domain.clear();  // of sizes nothing is asked
  const auto basis = [&machine](const TraceStep& step) { return trust_in(machine, step).trust.basis; };
  CHECK(basis(plain) == Basis::interpolated);
  CHECK(basis(quantized) == Basis::interpolated);

  TraceStep other = plain;
  other.options.activations = ActivationMode::int8;  // F16 weights do not take them so
  CHECK(basis(other) == Basis::interpolated);
  other.options.activations = ActivationMode::bf16;
  other.options.weights.dtype = Dtype::bf16;
  CHECK(basis(other) == Basis::extrapolated);
  other = plain;
  other.options.kv_cache_dtype = Dtype::kivi4;
  CHECK(basis(other) == Basis::extrapolated);
  CHECK((trust_in(machine, other).trust.high / trust_in(machine, other).predicted) == Approx(1.44));
  other = plain;
  other.options.weights = {Dtype::int8, -1};
  CHECK(basis(other) == Basis::extrapolated);
  other = plain;
  other.options.kv_retention = {.policy = RetentionPolicy::window, .window_tokens = 512};
  CHECK(basis(other) == Basis::extrapolated);
}

TEST_CASE("a calibration that does not say which formats its steps had cannot tell, and extrapolates") {
  const TraceStep step = make_step(llama_3_8b(), Phase::decode, 8, 700);
  Machine machine = calibrated_machine(1.2, {step});
  machine.calibration->formats.reset();
  CHECK(trust_in(machine, step).trust.basis == Basis::extrapolated);
}

TEST_CASE("no interval reaches below the floor") {
  const TraceStep step = make_step(llama_2_7b(), Phase::decode, 1, 100);
  const Machine machine = calibrated_machine(10, {step});
  const PredictedStep each = trust_in(machine, step);
  CHECK(each.trust.low == step_floor(machine, each.plan));
  CHECK(each.trust.low > each.predicted / 10.0);
}

TEST_CASE("an interval contains its prediction and stays above the floor, on any machine") {
  RandomCases random(11);
  for (int trial = 0; trial < 300; ++trial) {
    const Machine machine = random.machine();
    TraceStep step;
    step.model = random.model();
    step.options = random.options();
    step.batch = random.batch();
    const PredictedStep each = trust_in(machine, step);
    INFO("trial " << trial);
    CHECK(each.trust.low <= each.predicted);
    CHECK(each.trust.high >= each.predicted);
    CHECK(each.trust.low >= std::min(each.predicted, step_floor(machine, each.plan)));
    CHECK(each.predicted.value() >= step_floor(machine, each.plan).value() * (1 - 1e-12));
  }
}

}  // namespace
}  // namespace dculab::sim::test

// Errors and intervals worked out by hand; fits that must find the machine a trace was made with.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>

#include "model/plan_step.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/errors.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/hold_out.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/cost/step_price.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/sim/synthetic_traces.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// Predicted over measured, each as given.
std::vector<PredictedMeasured> pairs_with(const std::vector<double>& ratios) {
  std::vector<PredictedMeasured> pairs;
  for (const double ratio : ratios) pairs.push_back({Seconds(2e-3 * ratio), Seconds(2e-3)});
  return pairs;
}

const FittedParameter& find_parameter(const Fit& fit, std::string_view key) {
  const auto found = std::find_if(fit.parameters.begin(), fit.parameters.end(),
                                  [key](const FittedParameter& each) { return each.key == key; });
  REQUIRE(found != fit.parameters.end());
  return *found;
}

TEST_CASE("quantiles are linear between ranks") {
  const std::array values{4.0, 1.0, 3.0, 2.0};
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 0.5) == Approx(2.5));
  CHECK(quantile(values, 0.9) == Approx(3.7));
  CHECK(quantile(values, 1) == 4);
  CHECK(quantile(std::array{7.0}, 0.9) == 7);
}

TEST_CASE("errors are relative to the measured time, positive when predicted too slow") {
  const ErrorSummary error = summarize_errors(pairs_with({1.1, 0.8, 1.0, 2.0}));
  CHECK(error.count == 4);
  CHECK(error.median_abs_error == Approx(0.15));
  CHECK(error.p90_abs_error == Approx(0.2 + 0.7 * 0.8));
  CHECK(error.bias == Approx(0.9 / 4));
  CHECK(summarize_errors(std::vector<PredictedMeasured>{}).count == 0);
}

TEST_CASE("the conformal factor is the residual of rank ceil((n + 1) coverage), in either direction") {
  const auto pairs = pairs_with({1.02, 1 / 1.04, 1.06, 1 / 1.08, 1.10, 1 / 1.12, 1.14, 1 / 1.16, 1.18});
  CHECK(conformal_factor(pairs, 0.5) == Approx(1.10));
  CHECK(conformal_factor(pairs, 0.8) == Approx(1.16));
  CHECK(conformal_factor(pairs, 0.9) == Approx(1.18));
  CHECK(conformal_factor(pairs_with({1.05, 0.5}), 0.9) == Approx(2));  // too few pairs: the largest
  CHECK(conformal_factor({}, 0.9) == 1);
}

TEST_CASE("a step below its bytes or its FLOP is refused, an honest one is not") {
  const Machine machine = mi50_like();
  // 32 layers of 4 D^2 + 3 D 11008 values and the head, 2 bytes each; 13.21 GB at 1024 GB/s, less 4 MiB of L2.
  const double weights = 2.0 * (32 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008) + 32000 * 4096.0);
  const TraceStep decode = make_step(llama_2_7b(), Phase::decode, 1, 16);
  const TraceStep prefill = make_step(llama_2_7b(), Phase::prefill, 1, 2048);
  std::vector<TraceStep> steps = time_steps(machine, {decode, prefill, decode, prefill}, 0, 1);
  CHECK(floor_violations(machine, steps).empty());

  steps[2].duration = Seconds(0.99 * weights / 1024e9);
  const FlopCount flops = total_flops(plan_step(prefill.model, prefill.options, prefill.batch));
  steps[3].duration = 0.99 * flops / (26.8 * kTflops);
  const std::vector<FloorViolation> found = floor_violations(machine, steps);
  REQUIRE(found.size() == 2);
  CHECK(found[0].row == 2);
  CHECK(found[0].what == "step");
  CHECK(found[0].limit == "DRAM");
  CHECK(found[0].floor.value() == Approx(weights / 1024e9).epsilon(0.003));
  CHECK(found[0].measured == steps[2].duration);
  CHECK(found[1].row == 3);
  CHECK(found[1].limit == "arithmetic peak");
  CHECK(found[1].floor.value() == Approx((flops / (26.8 * kTflops)).value()));
}

TEST_CASE("a single op that beats the memory is refused by its name") {
  const Machine machine = mi50_like();
  std::vector<TraceStep> steps = time_steps(machine, {make_step(llama_2_7b(), Phase::decode, 1, 16)}, 0, 1);
  const auto down = std::find(steps[0].op_names.begin(), steps[0].op_names.end(), "down_proj");
  REQUIRE(down != steps[0].op_names.end());
  const double bytes = 32 * 2.0 * 4096 * 11008;
  steps[0].op_durations[static_cast<std::size_t>(down - steps[0].op_names.begin())] = Seconds(0.9 * bytes / 1024e9);
  const std::vector<FloorViolation> found = floor_violations(machine, steps);
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == "down_proj");
  CHECK(found[0].limit == "DRAM");
}

TEST_CASE("only what an importer may find fused can take no time of its own") {
  const Machine machine = mi50_like();
  for (const Phase phase : {Phase::decode, Phase::prefill}) {
    const TraceStep step = time_steps(machine, {make_step(llama_2_7b(), phase, 1, 16)}, 0, 1).front();
    for (std::size_t op = 0; op < step.op_names.size(); ++op) {
      INFO(step.op_names[op]);
      TraceStep fused = step;
      fused.op_durations[op] = Seconds(0);
      const std::vector<FloorViolation> found = floor_violations(machine, std::vector{fused});
      if (step.op_names[op] == "embed_tokens" || step.op_names[op] == "rope_and_cache" ||
          step.op_names[op] == "silu_and_mul") {
        CHECK(found.empty());
      } else {
        REQUIRE(found.size() == 1);
        CHECK(found[0].what == step.op_names[op]);
        CHECK(found[0].measured == Seconds(0));
      }
    }
  }
}

// What a trace may find out: other shares and times than the priors'.
Machine gpu_truth() {
  Machine machine = mi50_like();
  machine.stack.reached.matmul_compute = 0.52;
  machine.stack.reached.attention_compute = 0.28;
  machine.sustained.dram_bandwidth = 0.70;
  machine.sustained.cache_bandwidth = 0.55;
  machine.stack.reached.block_lookup = Seconds(40e-9);
  machine.overheads = {Seconds(9e-6), Seconds(800e-6), Seconds(12e-6), Seconds(250e-9)};
  return machine;
}

Machine gpu_guess() {
  Machine machine = mi50_like();
  machine.overheads.host_per_step = Seconds(300e-6);
  machine.overheads.host_per_sequence = Seconds(5e-6);
  return machine;
}

TEST_CASE("a fit weighs measurements against the prior as least squares does") {
  constexpr double kSigma = 0.01;  // of the measured value, on the log scale; the prior's is 0.15
  const Machine base = mi50_like();
  const double prior = base.sustained.dram_bandwidth;
  const auto measured = [](double value) {
    return [value](const Machine& machine) { return std::log(machine.sustained.dram_bandwidth / value) / kSigma; };
  };
  const Fit fit = fit_residuals(base, [&](const Machine& m) { return std::vector{measured(0.6)(m)}; });
  const double trust = 1 / (kSigma * kSigma), doubt = 1 / (0.15 * 0.15);
  const double expected = (trust * std::log(0.6) + doubt * std::log(prior)) / (trust + doubt);
  const FittedParameter& bandwidth = find_parameter(fit, "sustained.dram_bandwidth");
  CHECK(bandwidth.prior == Approx(prior));
  CHECK(std::log(bandwidth.value) == Approx(expected).epsilon(1e-3));
  CHECK(bandwidth.log_sigma == Approx(1 / std::sqrt(trust + doubt)).epsilon(0.01));
  CHECK(fit.machine.sustained.dram_bandwidth == Approx(bandwidth.value));

  // Nothing was said about the others.
  for (const FittedParameter& parameter : fit.parameters) {
    if (parameter.key == bandwidth.key) continue;
    INFO(parameter.key);
    CHECK(parameter.value == Approx(parameter.prior).epsilon(1e-6));
    CHECK(parameter.log_sigma == Approx(parameter.prior_log_sigma).epsilon(1e-3));
  }

  // One reading of half the bandwidth among ten pulls by its direction only: 2 thresholds of 2 sigma / 20.
  const Fit robust = fit_residuals(base, [&](const Machine& m) {
    std::vector<double> rows(10, measured(0.6)(m));
    rows.push_back(measured(0.3)(m));
    return rows;
  });
  CHECK(std::log(robust.machine.sustained.dram_bandwidth / 0.6) == Approx(-0.2 * kSigma).margin(0.002));

  // Ten readings in one row are ten rows.
  const std::vector<double> counts{10, 1};
  const Fit counted = fit_residuals(
      base,
      [&](const Machine& m) {
        return std::vector{measured(0.6)(m), measured(0.3)(m)};
      },
      counts);
  CHECK(counted.machine.sustained.dram_bandwidth == Approx(robust.machine.sustained.dram_bandwidth));
}

TEST_CASE("a step that is measured again with the same result weighs twice") {
  const Machine truth = gpu_truth(), base = gpu_guess();
  const std::vector<TraceStep> steps = time_steps(
      truth, {make_step(llama_2_7b(), Phase::decode, 1, 512), make_step(llama_2_7b(), Phase::prefill, 1, 300)}, 0.05,
      3);
  std::vector<TraceStep> repeated(5, steps[0]), nearly = repeated;
  repeated.push_back(steps[1]), nearly.push_back(steps[1]);
  for (std::size_t index = 0; index < 5; ++index) nearly[index].duration *= 1 + 1e-12 * static_cast<double>(index);
  for (const FittedParameter& once : fit_machine(base, repeated).parameters) {
    INFO(once.key);
    CHECK(once.value == Approx(find_parameter(fit_machine(base, nearly), once.key).value).epsilon(1e-6));
  }
}

TEST_CASE("a fit to a noisy synthetic trace predicts points it did not see") {
  std::vector<TraceStep> grid = step_grid();  // one grid alone does not separate DRAM from caches
  std::ranges::copy(step_grid(0.8), std::back_inserter(grid));
  const std::vector<TraceStep> seen = time_steps(gpu_truth(), grid, 0.01, 1);
  const std::vector<TraceStep> unseen = time_steps(gpu_truth(), step_grid(1.3), 0, 2);
  const ErrorSummary before = summarize_errors(compare_steps(gpu_guess(), unseen));
  CHECK(before.median_abs_error > 0.15);

  const Fit fit = fit_machine(gpu_guess(), seen);
  const ErrorSummary after = summarize_errors(compare_steps(fit.machine, unseen));
  INFO("before " << before.median_abs_error << ", after " << after.median_abs_error << ", P90 " << after.p90_abs_error);
  CHECK(after.median_abs_error < 0.01);
  CHECK(after.p90_abs_error < 0.03);
  CHECK(fit.error.median_abs_error < 0.015);

  // No parameter is further from the truth than the fit itself says it may be; what traces show well is close.
  for (const Parameter& parameter : parameters()) {
    if (!matters(gpu_truth(), parameter)) continue;
    const FittedParameter& fitted = find_parameter(fit, parameter.key);
    INFO(parameter.key << " " << fitted.value << ", sigma " << fitted.log_sigma);
    CHECK(std::abs(std::log(fitted.value / get(gpu_truth(), parameter))) < 4 * fitted.log_sigma);
  }
  CHECK(fit.machine.sustained.dram_bandwidth == Approx(0.70).epsilon(0.08));
  CHECK(fit.machine.stack.reached.matmul_compute == Approx(0.52).epsilon(0.03));
  CHECK(fit.machine.overheads.host_per_step.value() == Approx(800e-6).epsilon(0.1));
  // Everything but the small model is multiplied in the format it is stored in.
  const FittedParameter& conversion = find_parameter(fit, "stack.reached.conversion_compute");
  CHECK(conversion.log_sigma > 0.9 * conversion.prior_log_sigma);
}

TEST_CASE("fitted values stay inside their bounds") {
  Machine truth = mi50_like();
  truth.memory.back().bandwidth = 5.0 * truth.memory.back().bandwidth;  // no share below 1 explains this
  const Fit fit = fit_machine(mi50_like(), time_steps(truth, step_grid(), 0, 1));
  for (const Parameter& parameter : parameters()) {
    INFO(parameter.key);
    const double value = get(fit.machine, parameter);
    CHECK(value >= parameter.lowest);
    CHECK(value <= parameter.highest);
  }
}

TEST_CASE("held-out rows are others than the fitted ones, and the draw depends on the seed alone") {
  const std::vector<TraceStep> steps = time_steps(gpu_truth(), step_grid(), 0.01, 3);
  const HoldOutScore score = calibrate_with_hold_out(gpu_guess(), steps, 0.5, 1);
  std::set<std::size_t> all(score.fitted.begin(), score.fitted.end());
  all.insert(score.held_out.begin(), score.held_out.end());
  CHECK(all.size() == steps.size());
  CHECK(score.fitted.size() + score.held_out.size() == steps.size());
  CHECK(score.held_out.size() == (steps.size() + 1) / 2);
  REQUIRE(score.pairs.size() == score.held_out.size());
  for (std::size_t index = 0; index < score.pairs.size(); ++index)
    CHECK(score.pairs[index].measured == steps[score.held_out[index]].duration);

  CHECK(calibrate_with_hold_out(gpu_guess(), steps, 0.5, 1).held_out == score.held_out);
  CHECK(calibrate_with_hold_out(gpu_guess(), steps, 0.5, 2).held_out != score.held_out);
}

// Of the prediction of a held-out step.
Basis basis_of(const TraceStep& step, const HoldOutScore& score) {
  const StepPlan plan = plan_step(step.model, step.options, step.batch);
  const Machine& machine = score.fit.machine;
  return confidence(machine, step.model, step.options, plan, price_step(machine, plan).seconds).basis;
}

TEST_CASE("held-out rows lie inside the interval that the fitted rows ask for") {
  const std::vector<TraceStep> steps = time_steps(gpu_truth(), step_grid(), 0.01, 3);
  const HoldOutScore score = calibrate_with_hold_out(gpu_guess(), steps, 0.5, 4);
  REQUIRE(score.fit.machine.calibration);
  const double factor = score.fit.machine.calibration->interval_factor;
  INFO("factor " << factor << ", covered " << score.covered << " of " << score.held_out.size());
  CHECK(factor > 1.01);  // not narrower than the noise
  CHECK(factor < 1.10);
  int inside = 0, known = 0;
  for (std::size_t index = 0; index < score.pairs.size(); ++index) {
    const auto& [predicted, measured] = score.pairs[index];
    const bool extrapolated = basis_of(steps[score.held_out[index]], score) == Basis::extrapolated;
    const double width = extrapolated ? factor * factor : factor;
    if (measured <= predicted * width && measured * width >= predicted) ++inside;
    if (!extrapolated) ++known;
  }
  CHECK(known > static_cast<int>(score.pairs.size()) / 2);
  CHECK(score.covered == static_cast<double>(inside) / static_cast<double>(score.pairs.size()));
  CHECK(score.covered >= 0.8);
  CHECK(score.error.median_abs_error < 0.02);
  CHECK(score.fit.machine.calibration->held_out_steps == static_cast<int>(score.fitted.size()));
}

}  // namespace
}  // namespace dculab::sim::test

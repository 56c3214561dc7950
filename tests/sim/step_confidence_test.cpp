// How far served figures are trusted: by hand, from priors and from a calibration, and what slower steps do to them.
#include "sim/serving/step_confidence.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/plan_step.hpp"
#include "model/shard.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/serving/step_sample.hpp"
#include "tests/sim/small_servers.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;

namespace {

std::vector<Batch> steps_of(const SimulatedServer& server) {
  StepSample sample(16);
  (void)simulate(server, requests_of(30, 200, 40), {},
                 {.on_step = [&](const ServedStep& step, int) { sample.add(step); }});
  return sample.batches();
}

Seconds total(SimulatedServer server, const Machine& machine, const std::vector<Batch>& steps) {
  server.machine = machine;
  const std::vector<Seconds> times = phase_times(server, steps);
  return std::accumulate(times.begin(), times.end(), Seconds{});
}

double floor_share(const SimulatedServer& server, const std::vector<Batch>& steps) {
  const ModelShape part = shard(server.model, {}, server.deployment.tensor_parallel_size);
  Seconds floor;
  for (const Batch& batch : steps) floor += step_floor(server.machine, plan_step(part, server.options, batch));
  return floor / total(server, server.machine, steps);
}

SimulatedServer calibrated_server(double factor, double most_sequences) {
  SimulatedServer server = small_server();
  TraceStep step;
  step.model = server.model;
  step.options = server.options;
  server.machine.calibration = Calibration{.held_out_steps = 20,
                                           .coverage = 0.9,
                                           .interval_factor = factor,
                                           .domain = {{"sequences", {1, most_sequences}}},
                                           .formats = calibrated_formats(features_of({&step, 1}))};
  return server;
}

}  // namespace

TEST_CASE("steps without traces of their machine are trusted as far as its priors", "[simulate]") {
  for (const int tensor_parallel : {1, 2}) {
    const SimulatedServer server = linked_server({.tensor_parallel_size = tensor_parallel});
    const std::vector<Batch> steps = steps_of(server);
    const StepConfidence trust = step_confidence(server, steps);
    const double sigma =
        prior_log_sigma(server.machine, [&](const Machine& moved) { return total(server, moved, steps); });
    CHECK(trust.basis == Basis::priors);
    CHECK_THAT(trust.high, WithinRel(std::exp(kNormalQuantile95 * sigma), 1e-9));
    CHECK_THAT(trust.low, WithinRel(std::max(1 / trust.high, floor_share(server, steps)), 1e-9));
  }
}

TEST_CASE("sizes of served steps are those of a device's part, as a single step's are", "[simulate]") {
  const SimulatedServer server = linked_server({.tensor_parallel_size = 2});
  const std::vector<Batch> steps = steps_of(server);
  const ModelShape part = shard(server.model, {}, 2);
  const std::vector<StepFeatures> served = served_features(server, steps);
  REQUIRE(served.size() == steps.size());
  for (std::size_t step = 0; step < steps.size(); ++step)
    CHECK(served[step].sizes == step_features(part, server.options, steps[step]).sizes);
}

TEST_CASE("what was fitted to one stack's results says nothing of another's", "[simulate]") {
  SimulatedServer server = small_server();
  const std::vector<Batch> steps = steps_of(server);
  const StepConfidence priors = step_confidence(server, steps);
  PointIntervals intervals;
  intervals.rows = 3;
  for (const auto& [name, kind] : kPriceKinds) intervals.factors[kind] = 1.1;
  server.machine.calibration.emplace();
  server.machine.calibration->intervals["another"] = intervals;
  const StepConfidence other = step_confidence(server, steps);
  CHECK(other.basis == Basis::priors);
  CHECK(other.high == priors.high);
  server.machine.calibration->intervals[server.machine.stack.name] = intervals;
  CHECK_THAT(step_confidence(server, steps).high, WithinRel(1.1, 1e-12));
  const std::vector<StepFeatures> served = served_features(server, steps);
  server.machine.calibration->domain = calibrated_domain(served);
  server.machine.calibration->formats = calibrated_formats(served);
  CHECK(step_confidence(server, steps).basis == Basis::interpolated);
  server.machine.calibration->domain["sequences"] = {1, 1};
  const StepConfidence outside = step_confidence(server, steps);
  CHECK(outside.basis == Basis::extrapolated);
  CHECK_THAT(outside.high, WithinRel(1.1 * 1.1, 1e-12));
}

TEST_CASE("steps of a calibrated machine are trusted by its factor, its square when they lie outside", "[simulate]") {
  const std::vector<Batch> steps = steps_of(small_server());
  const StepConfidence inside = step_confidence(calibrated_server(1.2, 16), steps);
  CHECK(inside.basis == Basis::interpolated);
  CHECK_THAT(inside.high, WithinRel(1.2, 1e-12));
  CHECK_THAT(inside.low, WithinRel(1 / 1.2, 1e-12));
  const StepConfidence outside = step_confidence(calibrated_server(1.2, 15), steps);
  CHECK(outside.basis == Basis::extrapolated);
  CHECK_THAT(outside.high, WithinRel(1.44, 1e-12));
}

TEST_CASE("a hundredth of the steps may lie outside of what was calibrated on", "[simulate]") {
  std::vector<Batch> steps(200, uniform_batch(Phase::decode, 8, 100));
  for (std::size_t rare : {50, 150}) steps[rare] = uniform_batch(Phase::decode, 9, 100);
  CHECK(step_confidence(calibrated_server(1.2, 8), steps).basis == Basis::interpolated);
  steps[151] = steps[150];
  CHECK(step_confidence(calibrated_server(1.2, 8), steps).basis == Basis::extrapolated);
}

TEST_CASE("no steps are trusted to be faster than the machine's floor", "[simulate]") {
  const SimulatedServer server = calibrated_server(100, 16);
  const std::vector<Batch> steps = steps_of(server);
  CHECK(floor_share(server, steps) > 0.1);
  CHECK_THAT(step_confidence(server, steps).low, WithinRel(floor_share(server, steps), 1e-9));
}

TEST_CASE("the time of a run scales with that of its steps", "[simulate]") {
  for (const Deployment& deployment : {Deployment{}, Deployment{.tensor_parallel_size = 2},
                                       Deployment{.tensor_parallel_size = 2, .pipeline_parallel_size = 2}}) {
    SimulatedServer server = linked_server(deployment);
    const ServingRun own = simulate(server, requests_of(30, 200, 40));
    for (const double scale : {0.5, 1.7}) {
      server.step_scale = scale;
      const ServingRun scaled = simulate(server, requests_of(30, 200, 40));
      CHECK_THAT(scaled.metrics.duration() / own.metrics.duration(), WithinRel(scale, 1e-9));
      CHECK_THAT(scaled.metrics.tpot().quantile(0.5) / own.metrics.tpot().quantile(0.5), WithinRel(scale, 3e-3));
      CHECK(scaled.num_steps == own.num_steps);
      for (const auto& [bound, time] : own.time_by_bound)
        CHECK_THAT(scaled.time_by_bound.at(bound) / time, WithinRel(scale, 1e-6));
    }
  }
}

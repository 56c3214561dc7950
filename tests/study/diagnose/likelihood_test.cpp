// Candidates against measurements that were made up from one of them.
#include "study/diagnose/likelihood.hpp"

#include <vector>

#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

StepFacts facts_of(int context, double predicted, double measured) {
  StepFacts facts;
  facts.asked.context = context;
  facts.predicted = Seconds(predicted);
  facts.measured = Seconds(measured);
  return facts;
}

// Up to `most` seconds a step, however long the context.
CauseCandidate constant(double most, double odds = kOrdinary) {
  CauseCandidate candidate{.cause = Cause::host_per_step, .least = 1e-4, .most = most, .odds = odds};
  candidate.extra = [](const StepFacts&, double amount) { return Seconds(amount); };
  return candidate;
}

// Up to `most` seconds for each token of context.
CauseCandidate growing(double most) {
  CauseCandidate candidate{.cause = Cause::kv_read_granularity, .least = most / 1000, .most = most};
  candidate.extra = [](const StepFacts& facts, double amount) { return Seconds(facts.asked.context * amount); };
  return candidate;
}

constexpr double kWide = 0.2;

TEST_CASE("two contexts tell what is constant from what grows, one does not") {
  const std::vector<CauseCandidate> both{constant(1), growing(1e-3)};
  const std::vector<StepFacts> one{facts_of(1000, 0.005, 0.047)};
  const Weighing unclear = weigh(one, both, 0, kWide);
  CHECK(unclear.candidates[0].share > 0.2);
  CHECK(unclear.candidates[1].share > 0.2);
  const std::vector<StepFacts> slope{facts_of(100, 0.005, 0.0092), facts_of(1000, 0.005, 0.047)};
  const Weighing grows = weigh(slope, both, 1, kWide);
  CHECK(grows.candidates[1].share > 0.9);
  CHECK(grows.candidates[0].share < 0.05);
  const std::vector<StepFacts> level{facts_of(100, 0.005, 0.047), facts_of(1000, 0.005, 0.047)};
  const Weighing stays = weigh(level, both, 1, kWide);
  CHECK(stays.candidates[0].share > 0.85);
  CHECK(stays.candidates[0].amount == Approx(0.042).epsilon(0.1));
  CHECK(stays.candidates[0].misfit < 0.1);
}

TEST_CASE("a constant and a slope together are two causes") {
  const std::vector<CauseCandidate> both{constant(1), growing(1e-3)};
  std::vector<StepFacts> steps;
  for (const int context : {128, 256, 512, 1024, 2048})
    steps.push_back(facts_of(context, 0.005, 0.020 + 42e-6 * context));
  const Weighing weighing = weigh(steps, both, 4, kWide);
  CHECK(weighing.candidates[0].share == Approx(0.015 / 0.101).margin(0.05));
  CHECK(weighing.candidates[1].share == Approx(0.086 / 0.101).margin(0.1));
  CHECK(weighing.candidates[0].probability > 0.9);
  CHECK(weighing.candidates[1].probability > 0.9);
}

TEST_CASE("what cannot add enough has no share") {
  const std::vector<CauseCandidate> both{constant(0.01), constant(1)};
  const Weighing weighing = weigh(std::vector{facts_of(1000, 0.005, 0.4)}, both, 0, kWide);
  CHECK(weighing.candidates[0].share < 0.01);
  CHECK(weighing.candidates[1].share > 0.4);
  CHECK(weighing.candidates[1].share + weighing.unknown > 0.95);
}

TEST_CASE("odds decide between causes that fit alike") {
  const std::vector<CauseCandidate> alike{constant(1, kUnusual), constant(1, kStated)};
  const Weighing weighing = weigh(std::vector{facts_of(1000, 0.005, 0.1)}, alike, 0, kWide);
  CHECK(weighing.candidates[1].share > 8 * weighing.candidates[0].share);
}

TEST_CASE("where nothing fits it is none of them") {
  const std::vector<CauseCandidate> small{constant(0.01)};
  const Weighing weighing = weigh(std::vector{facts_of(1000, 0.005, 0.4)}, small, 0, kWide);
  CHECK(weighing.unknown > 0.99);
}

// Beyond the factor up to which the unknown is as likely as any, too.
TEST_CASE("a step that is slower than anything explains is none of them") {
  const std::vector<CauseCandidate> small{constant(0.01), growing(1e-5)};
  for (const double times : {500.0, 3000.0, 1e6}) {
    INFO(times);
    const Weighing weighing = weigh(std::vector{facts_of(1000, 0.005, 0.005 * times)}, small, 0, kWide);
    CHECK(weighing.unknown > 0.999);
    CHECK(weighing.candidates[0].probability < 0.001);
  }
  const std::vector<StepFacts> both{facts_of(100, 0.005, 0.001), facts_of(1000, 0.005, 50)};
  CHECK(weigh(both, small, 1, kWide).unknown > 0.999);
}

}  // namespace
}  // namespace dculab::study

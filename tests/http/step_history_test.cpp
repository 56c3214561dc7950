#include "bindings/http/step_history.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/support/catch.hpp"

using namespace dculab;
using http::StepHistory;
using http::StepView;

namespace {

void add_step(StepHistory& history, double begin, double seconds, Phase phase) {
  StepPlan plan;
  plan.batch.sequences = {{.phase = phase, .num_computed_tokens = 10, .num_new_tokens = phase == Phase::decode ? 1 : 7},
                          {.phase = Phase::decode, .num_computed_tokens = 20}};
  const StepResult result{.duration = Seconds(seconds), .op_durations = {}};
  const Scheduler scheduler({}, {.num_blocks = 1, .max_position_embeddings = 1});
  history.add({Seconds(begin), Seconds(begin + seconds), plan, result, scheduler});
}

// Once all steps are there: another thread prices them.
StepView settled(const StepHistory& history, std::int64_t steps) {
  for (int look = 0; look < 10000; ++look) {
    StepView view = history.view(0);
    if (view.all.steps + view.all.unpriced == steps) return view;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw std::runtime_error("the steps were never priced");
}

}  // namespace

TEST_CASE("steps are kept with their prices, in order", "[http]") {
  std::vector<double> begins;
  StepHistory history("host", [&begins](const Batch& batch, Seconds begin) {
    begins.push_back(begin.value());
    return Seconds(0.5 * static_cast<double>(batch.num_tokens()));
  });
  add_step(history, 0, 3, Phase::prefill);
  add_step(history, 3, 2, Phase::decode);
  const StepView view = settled(history, 2);
  REQUIRE(begins == std::vector<double>{0, 3});
  REQUIRE(view.machine == "host");
  REQUIRE(view.steps.size() == 2);
  REQUIRE(view.steps[0].number == 1);
  REQUIRE(view.steps[0].sequences == 2);
  REQUIRE(view.steps[0].prefill_tokens == 7);
  REQUIRE(view.steps[0].context_tokens == 38);
  REQUIRE(view.steps[0].measured == Seconds(3));
  REQUIRE(view.steps[0].predicted == Seconds(4));
  REQUIRE(view.all.measured == Seconds(5));
  REQUIRE(view.all.predicted == Seconds(5));
  REQUIRE(view.decodes.steps == 1);
  REQUIRE(view.decodes.predicted == Seconds(1));
  REQUIRE(history.view(1).steps.size() == 1);
  REQUIRE(history.view(2).steps.empty());
}

TEST_CASE("without a machine nothing is predicted", "[http]") {
  StepHistory history("", {});
  add_step(history, 0, 1, Phase::decode);
  const StepView view = settled(history, 1);
  REQUIRE(view.steps.size() == 1);
  REQUIRE_FALSE(view.steps[0].predicted);
  REQUIRE(view.all.unpriced == 1);
}

TEST_CASE("a slow price delays no step, and a step without a price is shown without", "[http]") {
  std::atomic<bool> goes_on = false;
  StepHistory history("host", [&goes_on](const Batch&, Seconds begin) {
    while (!goes_on) std::this_thread::yield();
    if (begin == Seconds(1)) throw std::runtime_error("no price");
    return Seconds(1);
  });
  for (int step = 0; step < 1000; ++step) add_step(history, step, 1, Phase::decode);  // returns at once
  goes_on = true;
  const StepView view = settled(history, 1000);
  REQUIRE(view.all.unpriced >= 1000 - 258);
  REQUIRE(view.all.unpriced < 1000);
  REQUIRE(view.steps.size() == 600);
}

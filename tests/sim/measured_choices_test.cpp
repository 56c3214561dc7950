// Which measured steps are one workload, and what deciding by prediction costs over them.
#include "sim/study/measured_choices.hpp"

#include <algorithm>

#include "tests/sim/machines.hpp"
#include "tests/sim/synthetic_traces.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim {
namespace {

TraceStep step_taking(TraceStep step, double seconds) {
  step.duration = Seconds(seconds);
  return step;
}

TraceStep of_lengths(int first, int second, int block_size) {
  TraceStep step = test::make_step(test::tiny_llama(), Phase::decode, 2, first, block_size);
  step.batch.sequences.back() = uniform_batch(Phase::decode, 1, second).sequences.front();
  return step;
}

TEST_CASE("batches of equally many tokens and the same longest context are two workloads where their lengths differ") {
  const Machine machine = test::a100_like();
  TraceStep three = test::make_step(test::tiny_llama(), Phase::decode, 3, 100);
  TraceStep other = three;
  three.batch.sequences[1] = uniform_batch(Phase::decode, 1, 10).sequences.front();
  const MeasuredChoices choices = measured_choices(machine, std::vector{step_taking(three, 1), step_taking(other, 2)});
  CHECK(choices.measured[0].workload != choices.measured[1].workload);
}

TEST_CASE("KV heads, block size and the model's name are no part of a workload, formats and layers are") {
  const Machine machine = test::a100_like();
  const TraceStep step = step_taking(of_lengths(100, 10, 16), 1);
  TraceStep choice = step_taking(of_lengths(100, 10, 64), 1), format = step, layers = step;
  choice.model.kinds[0].gqa().heads.num_key_value_heads = 1;
  choice.model.name = "merged";
  format.options.kv_cache_dtype = Dtype::fp8_e4m3;
  layers.model = with_layers(layers.model, layers.model.num_layers() + 1);
  const MeasuredChoices choices = measured_choices(machine, std::vector{step, choice, format, layers});
  CHECK(choices.measured[1].workload == choices.measured[0].workload);
  CHECK(choices.measured[2].workload != choices.measured[0].workload);
  CHECK(choices.measured[3].workload != choices.measured[0].workload);
  CHECK(choices.measured[1].choice == Choice{1, 64});
}

TEST_CASE("following the prediction costs what the predicted block took more, and one choice decides nothing") {
  const Machine machine = test::a100_like();
  const auto regret = [&](double small_block, double large_block) {
    const std::vector steps{step_taking(of_lengths(900, 10, 1), small_block),
                            step_taking(of_lengths(900, 10, 256), large_block)};
    return decision_regret(measured_choices(machine, steps)).value();
  };
  // Whichever of the two is predicted best: it is the slower one in one of these traces.
  CHECK(regret(1, 1.5).predicted_best == regret(1.5, 1).predicted_best);
  CHECK(std::max(regret(1, 1.5).regret, regret(1.5, 1).regret) == Approx(0.5));
  CHECK(std::min(regret(1, 1.5).regret, regret(1.5, 1).regret) == 0);
  CHECK_FALSE(decision_regret(measured_choices(machine, std::vector{step_taking(of_lengths(900, 10, 16), 1)})));
}

}  // namespace
}  // namespace dculab::sim

// The simulated schedule is the engine's: with the times of a real run's steps, the same batches, blocks and
// preemptions, step by step. Here the loop that `simulate` runs; that its clusters run this very loop, as closely
// looked at, is in tests/sim/cluster_soak_test.cpp.
#include <vector>

#include "core/scheduler.hpp"
#include "core/serving_loop.hpp"
#include "core/workload.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "engine/generate/wall_clock.hpp"
#include "model/plan_step.hpp"
#include "tests/engine/support/small_gpu_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seen_step.hpp"

using namespace dculab;
using namespace dculab::engine;
using dculab::test::seen;
using dculab::test::SeenStep;

namespace {

constexpr int kBlocks = 24;

struct Schedule {
  std::vector<SeenStep> steps;
  std::vector<Seconds> begins;
  int preemptions = 0;
  std::int64_t cached_tokens = 0;
};

// The engine's greedy token; what it is does not matter, since eos is ignored.
class FirstLogit final : public TokenSource {
 public:
  explicit FirstLogit(const ModelExecutor& executor) : executor_(executor) {}
  TokenId next_token(const Sequence&, int row) override { return executor_.logits(row)[0] > 0 ? 1 : 2; }

 private:
  const ModelExecutor& executor_;
};

class SameToken final : public TokenSource {
 public:
  TokenId next_token(const Sequence&, int) override { return 0; }
};

class Nothing final : public Executor {
 public:
  void copy_blocks(std::span<const BlockCopy>) override {}
  void swap_blocks(std::span<const BlockCopy>, std::span<const BlockCopy>) override {}
  StepResult run(const StepPlan&) override { return {}; }
};

// Shows at each step the time that a recorded one began at.
class ReplayedClock final : public Clock {
 public:
  explicit ReplayedClock(const std::vector<Seconds>& begins) : begins_(begins) {}
  [[nodiscard]] Seconds now() const override { return step_ < begins_.size() ? begins_[step_] : begins_.back(); }
  void step_took(Seconds) override { ++step_; }
  void wait_until(Seconds) override {}

 private:
  const std::vector<Seconds>& begins_;
  std::size_t step_ = 0;
};

Schedule serve(const ServingParts& parts, const RequestWorkload& workload) {
  Schedule schedule;
  ServingLoop loop(parts, {.on_step = [&](const ServedStep& step) {
                     schedule.steps.push_back(seen(step));
                     schedule.begins.push_back(step.begin);
                   }});
  RequestSource source(workload);
  loop.run(source);
  schedule.preemptions = parts.scheduler.num_preemptions();
  schedule.cached_tokens = loop.report().num_cached_tokens;
  return schedule;
}

// Arrivals in bursts, while others run and after they have ended, on memory that is too small for all.
RequestWorkload bursts() {
  RequestWorkload workload{.requests = 60, .arrival = ArrivalKind::gamma};
  workload.prompt = {LengthKind::uniform, 1, 0, 3, 60};
  workload.output = {LengthKind::uniform, 1, 0, 1, 40};
  workload.requests_per_second = 20000;
  workload.burstiness = 0.1;
  workload.vocab_size = 96;
  workload.prefix_tokens = 20;
  workload.prefixes = 5;
  return workload;
}

void check_simulated(const ModelShape& shape, const EngineOptions& options, const SchedulerLimits& limits,
                     const Schedule& real) {
  for (const BatchContents contents : {BatchContents::executable, BatchContents::lengths_only}) {
    Scheduler scheduler(options, limits, contents);
    Nothing nothing;
    SameToken same;
    ReplayedClock replayed(real.begins);
    const Schedule simulated = serve({planner_of(shape, options), scheduler, nothing, same, replayed}, bursts());
    CHECK(simulated.preemptions == real.preemptions);
    CHECK(simulated.cached_tokens == real.cached_tokens);
    REQUIRE(simulated.steps.size() == real.steps.size());
    for (std::size_t step = 0; step < real.steps.size(); ++step) {
      SeenStep expected = real.steps[step];
      if (contents == BatchContents::lengths_only) expected.block_tables.clear();  // `simulate` makes none
      REQUIRE(simulated.steps[step] == expected);
    }
  }
}

}  // namespace

TEST_CASE("with the times of a real run replayed, the simulated schedule equals the engine's", "[serving]") {
  for (const bool prefix_caching : {false, true})
    for (const auto& [batching, host_blocks] :
         {std::pair{Batching::continuous, 0}, {Batching::per_batch, 0}, {Batching::continuous, 12}}) {
      const ModelWeights weights = random_weights(small_model(2), 5);
      EngineOptions options;
      options.block_size = 8;
      options.kv_cache_dtype = Dtype::f32;
      options.activation_dtype = Dtype::f32;
      options.weights = {Dtype::f32, 0};
      options.max_num_seqs = 12;
      options.max_num_batched_tokens = 48;
      options.enable_prefix_caching = prefix_caching;
      options.batching = batching;
      options.preemption_mode = host_blocks > 0 ? PreemptionMode::swap : PreemptionMode::recompute;
      const SchedulerLimits limits{
          .num_blocks = kBlocks, .max_position_embeddings = 256, .num_host_blocks = host_blocks};

      CpuExecutor executor(
          weights, {.num_blocks = kBlocks, .block_size = 8, .dtype = Dtype::f32, .num_host_blocks = host_blocks}, 2);
      Scheduler real_scheduler(options, limits);
      FirstLogit greedy(executor);
      WallClock wall_clock;
      const Schedule real =
          serve({planner_of(weights.shape, options), real_scheduler, executor, greedy, wall_clock}, bursts());

      INFO("prefix caching " << prefix_caching << ", steps " << real.steps.size());
      CHECK(real.preemptions > 0);
      CHECK((real_scheduler.swaps().preemptions > 0) == (host_blocks > 0));
      CHECK((real.cached_tokens > 0) == prefix_caching);
      check_simulated(weights.shape, options, limits, real);
    }
}

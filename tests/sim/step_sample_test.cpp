#include "sim/serving/step_sample.hpp"

#include <array>
#include <numeric>

#include "tests/sim/small_servers.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;

TEST_CASE("a sampled step is as cold as the one that was taken", "[simulate]") {
  SimulatedServer server = small_server();
  server.machine = cpu_like();
  server.model = tiny_llama();
  server.machine.memory[2].retention_time = Seconds(5e-3);
  StepSample sample(100'000);
  Seconds taken;
  const auto on_step = [&](const ServedStep& step, int) {
    sample.add(step);
    taken += step.result.duration;
  };
  RequestWorkload workload = requests_of(20, 50, 10);
  workload.arrival = ArrivalKind::gamma;
  workload.requests_per_second = 1;
  (void)simulate(server, workload, {}, {.on_step = on_step});
  const auto all = [&] {
    const std::vector<Seconds> times = phase_times(server, sample.batches());
    return std::accumulate(times.begin(), times.end(), Seconds{});
  };
  CHECK_THAT(all() / taken, WithinRel(1, 1e-9));
  server.machine.sustained.cold_miss_bandwidth *= 0.5;
  CHECK(all() > 1.001 * taken);
}

TEST_CASE("thinned steps are equally far apart, and all of few are kept", "[simulate]") {
  std::vector<Batch> steps;
  for (int sequences = 1; sequences <= 40; ++sequences) steps.push_back(uniform_batch(Phase::decode, sequences, 10));
  const std::vector<Batch> kept = thinned(steps, 16);
  REQUIRE(kept.size() == 14);
  for (std::size_t index = 0; index < kept.size(); ++index) CHECK(kept[index].sequences.size() == 3 * index + 1);
  CHECK(thinned(steps, 40).size() == 40);
  CHECK(thinned(steps, 1).size() == 1);
}

TEST_CASE("sampled steps are spread over the whole run, and take again what they took", "[simulate]") {
  for (const int tensor_parallel : {1, 2}) {
    SimulatedServer server = linked_server();
    server.deployment.tensor_parallel_size = tensor_parallel;
    for (const std::size_t most : {std::size_t{2}, std::size_t{16}, std::size_t{100'000}}) {
      StepSample sample(most);
      std::vector<Seconds> taken;
      std::vector<Batch> batches;
      const auto on_step = [&](const ServedStep& step, int) {
        sample.add(step);
        taken.push_back(step.result.duration);
        batches.push_back({step.plan.batch.sequences, {}, {}, {}});
      };
      const ServingRun run = simulate(server, requests_of(30, 200, 40), {}, {.on_step = on_step});
      const std::size_t kept = sample.batches().size();
      CHECK(kept <= most);
      CHECK(2 * kept >= std::min(most, batches.size()));
      // Every n-th: a batch is the one that stands n times as far in the run.
      std::size_t every = 1;
      while ((batches.size() + every - 1) / every > kept) every *= 2;
      std::array<Seconds, 2> by_phase;  // with prefill, without
      for (std::size_t index = 0; index < kept; ++index) {
        const Batch& batch = sample.batches()[index];
        CHECK(batch.num_tokens() == batches[index * every].num_tokens());
        const Seconds time = phase_times(server, std::span(&batch, 1)).front();
        CHECK_THAT(time.value(), WithinRel(taken[index * every].value(), 1e-12));
        by_phase.at(batch.sequences.front().phase == Phase::prefill ? 0 : 1) += time;
      }
      const std::vector<Seconds> times = phase_times(server, sample.batches());
      REQUIRE(times.size() == (by_phase[1] > Seconds() ? 2 : 1));
      for (std::size_t phase = 0; phase < times.size(); ++phase)
        CHECK_THAT(times[phase].value(), WithinRel(by_phase.at(phase).value(), 1e-12));
      CHECK(run.num_steps == static_cast<std::int64_t>(batches.size()));
    }
  }
}

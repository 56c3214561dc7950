#include "sim/serving/step_sample.hpp"

#include <algorithm>

#include "model/plan_step.hpp"
#include "sim/serving/parallel_executor.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] bool has_prefills(const Batch& batch) {
  return std::ranges::any_of(batch.sequences, [](const SequenceSlice& slice) { return slice.phase == Phase::prefill; });
}

}  // namespace

ReplicaDevices devices_that_run(const Deployment& deployment, const Batch& batch) {
  if (!deployment.is_disaggregated()) return deployment.of(ReplicaRole::both);
  return deployment.of(has_prefills(batch) ? ReplicaRole::prefill : ReplicaRole::decode);
}

const Machine& machine_that_runs(const SimulatedServer& server, const Batch& batch) {
  return server.machine_of(has_prefills(batch) ? ReplicaRole::prefill : ReplicaRole::decode);
}

void StepSample::add(const ServedStep& step) {
  if (seen_++ % every_ != 0) return;
  if (batches_.size() == most_) {
    for (std::size_t kept = 1; 2 * kept < most_; ++kept) batches_[kept] = std::move(batches_[2 * kept]);
    batches_.resize(most_ / 2);
    every_ *= 2;
    if ((seen_ - 1) % every_ != 0) return;
  }
  Batch& batch = batches_.emplace_back();
  batch.sequences = step.plan.batch.sequences;
  batch.cold_share = step.result.cold_share;
  batch.head_set = step.plan.batch.head_set;
}

std::vector<Batch> thinned(std::span<const Batch> batches, std::size_t most) {
  const std::size_t every = (batches.size() + most - 1) / most;
  std::vector<Batch> kept;
  for (std::size_t index = 0; index < batches.size(); index += every) kept.push_back(batches[index]);
  return kept;
}

std::vector<Seconds> phase_times(const SimulatedServer& server, std::span<const Batch> batches) {
  Seconds with_prefill, without;
  StepPlan plan;
  for (const Batch& batch : batches) {
    const VirtualClock clock;
    const ReplicaDevices devices = devices_that_run(server.deployment, batch);
    StageTimes stages(static_cast<std::size_t>(devices.pipeline_parallel_size));
    const ServedModel served = served_with(server, devices, batch.head_set);
    ParallelExecutor executor(machine_that_runs(server, batch), served.model, served.options, devices, clock, stages,
                              server.step_scale);
    plan.batch = batch;
    plan_step_into(plan, executor.planned_model(), served.options);
    (has_prefills(batch) ? with_prefill : without) += executor.run(plan).duration;
  }
  std::vector<Seconds> times;
  for (const Seconds time : {with_prefill, without})
    if (time > Seconds()) times.push_back(time);
  return times;
}

}  // namespace dculab::sim

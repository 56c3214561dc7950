#include "sim/serving/parallel_executor.hpp"

#include <algorithm>

#include "model/plan_step.hpp"
#include "sim/cost/energy.hpp"

namespace dculab::sim {

ParallelExecutor::ParallelExecutor(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                                   ReplicaDevices devices, const Clock& clock, StageTimes& stages, double step_scale)
    : machine_(machine),
      model_(model),
      options_(options),
      devices_(devices),
      clock_(clock),
      stages_(stages),
      step_scale_(step_scale),
      activation_dtype_(options.activation_dtype),
      shard_(part_of_layers(devices, machine, model, options)),
      device_(machine, shard_, options),
      rebalancing_(rebalancing_factor(devices, machine, shard_, options)) {}

void ParallelExecutor::add(std::string_view bound, Seconds price) {
  if (price > Seconds{}) time_by_bound_[std::string(bound)] += step_scale_ * price;
}

// Of the step that the device ran last, with the copies before it.
void ParallelExecutor::add_energy(const StepPlan& plan) {
  if (!machine_.power.is_stated()) return;
  active_energy_ +=
      step_scale_ * (sim::active_energy(machine_, plan, device_.price()) + copying_energy(machine_, device_.copies()));
}

ParallelExecutor::Work ParallelExecutor::add_bounds(const StepPlan& plan) {
  const StepPrice& price = device_.price();
  add("host", price.host);
  add("sampling", price.sampling);
  Work work{.before_layers = price.host,
            .after_layers = price.sampling,
            .layers = std::vector<Seconds>(model_.kinds.size()),
            .of_all_layers = {}};
  for (std::size_t index = 0; index < price.ops.size(); ++index) {
    const OpPrice& op = price.ops[index];
    const Seconds time = op.all_executions();
    const Seconds cold_misses = op.count * op.cold_misses;
    add("cold caches", cold_misses);
    add(name(op.bound, machine_), time - cold_misses);
    const Op& planned = plan.ops[index];
    (planned.stage == Stage::before_layers ? work.before_layers
     : planned.stage == Stage::layer       ? work.layers[planned.layer_kind]
                                           : work.after_layers) += time;
  }
  return work;
}

// One after the other on the device, but for what hides.
StepResult ParallelExecutor::run_micro_batches() {
  plan_step_into(first_, shard_, options_);
  plan_step_into(second_, shard_, options_);
  StepResult result = device_.run(first_);
  const StepPrice before = device_.price();
  static_cast<void>(add_bounds(first_));
  add_energy(first_);
  add("block copies", device_.copies());
  add("swap", device_.swaps());
  const Seconds moved = device_.copies() + device_.swaps(), paused = device_.pauses();
  result.op_durations.clear();
  static_cast<void>(device_.run(second_));
  static_cast<void>(add_bounds(second_));
  add_energy(second_);
  add("pauses", paused + device_.pauses());
  const OverlappedPrice both = overlapped(machine_, first_, before, second_, device_.price());
  time_by_bound_["host"] -= step_scale_ * (before.host + device_.price().host - both.host);
  time_by_bound_["exchange"] -= step_scale_ * both.hidden;
  result.duration = moved + paused + device_.pauses() + both.seconds;
  return result;
}

StepResult ParallelExecutor::run(const StepPlan& plan) {
  device_.begin_at(clock_.now());
  const bool overlaps = devices_.experts.micro_batches == 2 && split_batch(plan.batch, first_.batch, second_.batch);
  StepResult result = overlaps ? run_micro_batches() : device_.run(plan);
  Work work;
  if (!overlaps) {
    work = add_bounds(plan);
    add_energy(plan);
    add("block copies", device_.copies());
    add("swap", device_.swaps());
    add("pauses", device_.pauses());
  }
  add("rebalancing", (rebalancing_ - 1) * result.duration);
  result.duration = step_scale_ * rebalancing_ * result.duration;
  device_time_ += result.duration / static_cast<double>(devices_.pipeline_parallel_size);
  if (devices_.pipeline_parallel_size == 1) return result;
  work.of_all_layers = device_.copies() + device_.swaps() + device_.pauses();
  result.duration = through_the_stages(plan, work);
  return result;
}

// What the stage's layers take of the work of all layers of their kinds.
Seconds ParallelExecutor::layers_in_stage(const Work& work, int stage) const {
  const int count = layers_of_stage(devices_, model_, stage);
  const auto begin = model_.layers.begin() + first_layer_of_stage(devices_, model_, stage);
  Seconds time = static_cast<double>(count) / model_.num_layers() * work.of_all_layers;
  for (std::size_t kind = 0; kind < work.layers.size(); ++kind) {
    const auto here = std::count(begin, begin + count, static_cast<std::uint8_t>(kind));
    time += static_cast<double>(here) / model_.num_layers(kind) * work.layers[kind];
  }
  return time;
}

Seconds ParallelExecutor::through_the_stages(const StepPlan& plan, const Work& work) {
  const Bytes hidden = storage(activation_dtype_, static_cast<double>(plan.batch.num_tokens()) * model_.hidden_size);
  const int last = devices_.pipeline_parallel_size - 1;
  Seconds now = clock_.now();
  for (int stage = 0; stage <= last; ++stage) {
    Seconds& free = stages_[static_cast<std::size_t>(stage)];
    if (free > now) time_by_bound_["pipeline"] += free - now;
    Seconds price = layers_in_stage(work, stage);
    if (stage == 0) price += work.before_layers;
    if (stage == last) price += work.after_layers;
    now = free = std::max(now, free) + step_scale_ * price;
    if (stage == last) break;
    const DeviceLink link = stage_link(devices_, machine_, stage);
    const Seconds transfer = hidden / link.bandwidth + link.latency;
    add("exchange", transfer);
    now += step_scale_ * transfer;
  }
  return now - clock_.now();
}

}  // namespace dculab::sim

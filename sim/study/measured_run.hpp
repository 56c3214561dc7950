// How a published figure comes about: the steps behind it, how often each is taken, and what they cost.
//
//   time  = sum over steps of times * price_step                  an engine that serves; of two micro-batches that
//                                                                 overlap their sim/cost/micro_batches
//         = price_op with what the kernels touch as footprint     a kernel in a loop
//         = probe_time                                            a benchmark of the hardware alone
//         + overheads.timed_call                                  where each call was timed alone
//   floor = the same sum over step_floor, or probe_floor
//   rate  = amount / time
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/op.hpp"
#include "core/step_plan.hpp"
#include "model/model_shape.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/input_sensitivity.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/machine_probe.hpp"

namespace dculab::sim {

struct RunStep {
  StepPlan plan;
  double times = 1;
  std::optional<StepPlan> beside{};  // the other of two micro-batches that are one step
};

// A step of `batch`, in two micro-batches if they are asked for and it has tokens for both.
[[nodiscard]] RunStep run_step(const ModelShape& part, const EngineOptions& options, const Batch& batch,
                               int micro_batches, double times);

// A step in two micro-batches that overlap, for which run_step has tokens.
struct TwoMicroBatches {
  Seconds seconds;
  Seconds hidden;  // of exchanges
};
[[nodiscard]] std::optional<TwoMicroBatches> two_micro_batches(const Machine& machine, const ModelShape& part,
                                                               const EngineOptions& options, const Batch& batch);

// What a step of an engine takes, once.
[[nodiscard]] Seconds price_run_step(const Machine& machine, const RunStep& step);

// What is timed: an engine's steps with its host work, one kernel in a loop, or one kernel that finds no weights
// or KV in a cache, since others ran in between or the caches were flushed.
enum class Timed : std::uint8_t { engine, kernel, cold_kernel };

// What a figure is the time of: a run that somebody measured, or could.
struct MeasuredRun {
  Timed timed = Timed::engine;
  std::vector<RunStep> steps;
  std::optional<MachineProbe> probe{};  // there are no steps then
  bool holds_call = false;              // the time includes overheads.timed_call
  double amount = 0;                    // published is amount / time: tokens, GB, FLOP; 0: the time itself

  // Turns a time into the published figure, and back.
  [[nodiscard]] double figure(Seconds time) const { return amount > 0 ? amount / time.value() : time.value(); }
  [[nodiscard]] Seconds time(double figure) const { return Seconds(amount > 0 ? amount / figure : figure); }
};

// What a price is of, as far as it is told apart how well such prices hold.
[[nodiscard]] PriceKind kind_of(const MeasuredRun& measured_run);

// The ops of `kernels`, each once.
[[nodiscard]] MeasuredRun kernel_run(StepPlan kernels);

[[nodiscard]] Seconds price_run(const Machine& machine, const MeasuredRun& measured_run);

// To which assumed figures the runs' times are sensitive; nothing where there are none.
[[nodiscard]] std::optional<std::vector<InputSensitivity>> input_sensitivities(
    const Machine& machine, const std::vector<const MeasuredRun*>& measured_runs);

// The least time in which the machine could do it.
[[nodiscard]] Seconds run_floor(const Machine& machine, const MeasuredRun& measured_run);

// What takes the largest share of the time: "compute", "latency", "launch", "call", a memory level, "host" or
// "exchange".
[[nodiscard]] std::string run_bound(const Machine& machine, const MeasuredRun& measured_run);

// 90 % interval, from how well such prices hold on the machine, or from its priors; never below the floor.
[[nodiscard]] Confidence run_confidence(const Machine& machine, const MeasuredRun& measured_run, Seconds predicted);

// What runs where.
struct PricedRun {
  const Machine& machine;  // with its stack
  const MeasuredRun& measured_run;
};

// How many times larger or smaller the time of `after` / that of `before` may be, at 90 %: by the differences of what
// each prior does to the two. Nothing where they are on different machines, or where one was calibrated: its intervals
// do not say what is common to both.
[[nodiscard]] std::optional<double> ratio_factor(const PricedRun& before, const PricedRun& after);

}  // namespace dculab::sim

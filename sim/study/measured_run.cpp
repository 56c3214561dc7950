#include "sim/study/measured_run.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "lower/lower.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/cost/micro_batches.hpp"

namespace dculab::sim {
namespace {

// What one kernel after the other, over and over, touches before it comes back.
[[nodiscard]] Bytes footprint_alone(const Machine& machine, const MeasuredRun& measured_run) {
  Bytes footprint = measured_run.timed == Timed::cold_kernel ? machine.dram().size : Bytes{};
  const StepPlan& plan = measured_run.steps.front().plan;
  for (const Op& op : plan.ops) footprint += lower::lower(op, plan, machine, machine.stack.kernels).unique_bytes();
  return footprint;
}

[[nodiscard]] Seconds price_alone(const Machine& machine, const MeasuredRun& measured_run) {
  const Bytes footprint = footprint_alone(machine, measured_run);
  const StepPlan& plan = measured_run.steps.front().plan;
  Seconds total;
  for (const Op& op : plan.ops) total += price_op(machine, plan, op, footprint).seconds;
  return total;
}

[[nodiscard]] Seconds call_time(const Machine& machine, const MeasuredRun& measured_run) {
  return measured_run.holds_call ? machine.overheads.timed_call : Seconds{};
}

// Time by what bounds it.
using Shares = std::map<std::string, Seconds>;

[[nodiscard]] Shares shares_alone(const Machine& machine, const MeasuredRun& measured_run) {
  Shares shares;
  const StepPlan& plan = measured_run.steps.front().plan;
  const Bytes footprint = footprint_alone(machine, measured_run);
  for (const Op& op : plan.ops) {
    const OpPrice price = price_op(machine, plan, op, footprint);
    shares[std::string(name(price.bound, machine))] += price.seconds;
  }
  shares["call"] += call_time(machine, measured_run);
  return shares;
}

[[nodiscard]] Shares shares_of_engine(const Machine& machine, const MeasuredRun& measured_run) {
  Shares shares;
  for (const RunStep& step : measured_run.steps) {
    for (const StepPlan* plan : {&step.plan, step.beside ? &*step.beside : nullptr}) {
      if (plan == nullptr) continue;
      const StepPrice price = price_step(machine, *plan);
      shares["host"] += step.times * price.host;
      for (const OpPrice& op : price.ops)
        shares[std::string(name(op.bound, machine))] += step.times * op.all_executions();
    }
  }
  return shares;
}

}  // namespace

RunStep run_step(const ModelShape& part, const EngineOptions& options, const Batch& batch, int micro_batches,
                 double times) {
  Batch first, second;
  if (micro_batches < 2 || !split_batch(batch, first, second)) return {plan_step(part, options, batch), times, {}};
  return {plan_step(part, options, std::move(first)), times, plan_step(part, options, std::move(second))};
}

std::optional<TwoMicroBatches> two_micro_batches(const Machine& machine, const ModelShape& part,
                                                 const EngineOptions& options, const Batch& batch) {
  const RunStep step = run_step(part, options, batch, 2, 1);
  if (!step.beside) return std::nullopt;
  const OverlappedPrice both =
      overlapped(machine, step.plan, price_step(machine, step.plan), *step.beside, price_step(machine, *step.beside));
  return TwoMicroBatches{both.seconds, both.hidden};
}

Seconds price_run_step(const Machine& machine, const RunStep& step) {
  const StepPrice price = price_step(machine, step.plan);
  if (!step.beside) return price.seconds;
  return overlapped(machine, step.plan, price, *step.beside, price_step(machine, *step.beside)).seconds;
}

PriceKind kind_of(const MeasuredRun& measured_run) {
  if (measured_run.probe) return PriceKind::hardware;
  if (measured_run.timed == Timed::engine) return PriceKind::step;
  const std::vector<Op>& ops = measured_run.steps.front().plan.ops;
  const auto any = [&ops](auto is) { return std::ranges::any_of(ops, is); };
  if (any([](const Op& op) { return op.attention.num_sequences > 0; })) return PriceKind::attention;
  return any([](const Op& op) { return op.kind == OpKind::all_reduce; }) ? PriceKind::exchange : PriceKind::product;
}

MeasuredRun kernel_run(StepPlan kernels) {
  MeasuredRun measured_run;
  measured_run.timed = Timed::kernel;
  for (Op& op : kernels.ops) op.count = 1;
  measured_run.steps.push_back({std::move(kernels), 1});
  return measured_run;
}

Seconds price_run(const Machine& machine, const MeasuredRun& measured_run) {
  if (measured_run.probe) return probe_time(machine, *measured_run.probe) + call_time(machine, measured_run);
  if (measured_run.timed != Timed::engine) return price_alone(machine, measured_run) + call_time(machine, measured_run);
  Seconds total;
  StepPrice price;
  for (const RunStep& step : measured_run.steps) {
    if (!step.beside) price_step(machine, step.plan, price);
    total += step.times * (step.beside ? price_run_step(machine, step) : price.seconds);
  }
  return total;
}

std::optional<std::vector<InputSensitivity>> input_sensitivities(const Machine& machine,
                                                                 const std::vector<const MeasuredRun*>& measured_runs) {
  if (measured_runs.empty()) return std::nullopt;
  return input_sensitivities(machine, [&measured_runs](const Machine& candidate) {
    std::vector<Seconds> times;
    for (const MeasuredRun* measured_run : measured_runs) times.push_back(price_run(candidate, *measured_run));
    return times;
  });
}

Seconds run_floor(const Machine& machine, const MeasuredRun& measured_run) {
  if (measured_run.probe) return probe_floor(machine, *measured_run.probe);
  Seconds total;
  for (const RunStep& step : measured_run.steps) {
    total += step.times * step_floor(machine, step.plan);
    if (step.beside) total += step.times * step_floor(machine, *step.beside);
  }
  return total;
}

std::string run_bound(const Machine& machine, const MeasuredRun& measured_run) {
  if (measured_run.probe) return probe_bound(machine, *measured_run.probe);
  const Shares shares = measured_run.timed == Timed::engine ? shares_of_engine(machine, measured_run)
                                                            : shares_alone(machine, measured_run);
  return std::ranges::max_element(shares, {}, [](const auto& share) { return share.second; })->first;
}

Confidence run_confidence(const Machine& machine, const MeasuredRun& measured_run, Seconds predicted) {
  const Spread spread = point_spread(machine, kind_of(measured_run)).value_or(Spread{});
  const auto of_priors = [&measured_run](const Machine& moved) { return price_run(moved, measured_run); };
  const double factor =
      spread.basis != Basis::priors ? spread.factor : std::exp(kNormalQuantile95 * prior_log_sigma(machine, of_priors));
  const Seconds floor = std::min(predicted, run_floor(machine, measured_run));
  return {std::max(predicted / factor, floor), predicted * factor, spread.basis};
}

std::optional<double> ratio_factor(const PricedRun& before, const PricedRun& after) {
  if (before.machine.name != after.machine.name || before.machine.calibration || after.machine.calibration)
    return std::nullopt;
  const auto shifts_of = [](const PricedRun& priced) {
    return prior_shifts(priced.machine,
                        [&priced](const Machine& moved) { return price_run(moved, priced.measured_run); });
  };
  const std::vector<double> first = shifts_of(before), second = shifts_of(after);
  double variance = 0;
  for (std::size_t index = 0; index < first.size(); ++index) variance += std::pow(second[index] - first[index], 2);
  return std::exp(kNormalQuantile95 * std::sqrt(variance));
}

}  // namespace dculab::sim

#include "sim/cost/split_price.hpp"

#include <algorithm>
#include <cmath>

#include "sim/compute/split_k.hpp"
#include "sim/memory/level_bytes.hpp"

namespace dculab::sim {
namespace {

constexpr double kRounding = 1 + 1e-9;  // a bound that is above the price by no more proves nothing
constexpr double kNormPower = 4;

[[nodiscard]] Seconds starting(const Lowered& lowered, double rounds, double parts) {
  const Machine& machine = lowered.machine;
  const int kernels = lowered.launch.kernels + (parts > 1 ? 1 : 0);
  return kernels * lowered.launches_per_kernel * machine.overheads.kernel_launch +
         rounds * machine.overheads.workgroup_start;
}

// What arithmetic or a level takes, which goes faster with each unit that is busy up to a limit.
struct Pace {
  Seconds one_unit, all_units;

  [[nodiscard]] Seconds with(double units) const { return std::max(all_units, one_unit / units); }
};

class LeastOfSplits {
 public:
  // `any`: the price of one of them.
  LeastOfSplits(const Lowered& lowered, const Parallelism& whole, const OpPrice& any)
      : lowered_(lowered), workgroups_(whole.workgroups) {
    const auto& [machine, op, launch, footprint, norm, launches_per_kernel] = lowered;
    OpPrice finest;
    finest.parallel = split_along_k(machine, whole, launch.most_parts);
    const LevelBytes bytes = level_bytes(machine, op, launch, finest.parallel, footprint, CacheStart::in_step);
    finest.bytes = bytes.arriving;
    const Seconds latency = mean_latencies(machine, bytes.arriving)[0];
    waiting_ = latency_time(machine, launch, finest.parallel, bytes.read, latency) * finest.parallel.concurrent;
    starting_ = starting(lowered, 1, 2);
    reduction_per_part_ = split_k_reduction_time(machine, launch, 2) / 2;
    const Resources one = resources(finest, 1, any), all = resources(finest, machine.compute_units, any);
    const std::size_t dram = machine.memory.size() - 1;
    compute_ = {one[kMaxMemoryLevels], all[kMaxMemoryLevels]};
    dram_ = {one[dram], all[dram]};
  }

  // Fewer parts take more than `enough`,
  [[nodiscard]] double fewest(Seconds enough) const {
    return std::floor(std::max(compute_.one_unit, dram_.one_unit) / (workgroups_ * (enough - starting_)));
  }

  // and more parts too.
  [[nodiscard]] double most(Seconds enough) const {
    const Seconds left = enough - starting_ - std::max(compute_.all_units, dram_.all_units);
    return std::min(lowered_.launch.most_parts, std::floor(left / reduction_per_part_));
  }

  [[nodiscard]] bool exceed(Seconds enough, const Way& way) const {
    const double units = way.parallel.active_units;
    const Seconds compute = compute_.with(units), dram = dram_.with(units);
    const Seconds latency = waiting_ / way.parallel.concurrent, largest = std::max({compute, dram, latency});
    const Seconds before = starting(lowered_, way.parallel.rounds, way.parts);
    if (before + largest > enough) return true;
    const Seconds left = enough - before - split_k_reduction_time(lowered_.machine, lowered_.launch, way.parts);
    if (lowered_.norm > kNormPower || largest > left) return largest > left;
    const auto share = [&](Seconds time) { return std::pow(time / left, 2) * std::pow(time / left, 2); };
    return share(compute) + share(dram) + share(latency) > 1;
  }

 private:
  [[nodiscard]] Resources resources(OpPrice& finest, double units, const OpPrice& any) const {
    finest.parallel.active_units = units;
    finest.compute = any.compute * any.parallel.busy_units() / units;
    PerLevel<Seconds> levels{};
    for (std::size_t level = 0; level < lowered_.machine.memory.size(); ++level)
      levels[level] = finest.bytes[level] / delivered(lowered_, finest.parallel, level);
    return resources_of(lowered_, finest, levels);
  }

  const Lowered& lowered_;
  double workgroups_;
  Seconds starting_;
  Seconds reduction_per_part_;  // at least, for each part
  Seconds waiting_;             // times workgroups that run at once
  Pace compute_, dram_;
};

}  // namespace

OpPrice price_cheapest_split(const Lowered& lowered, const Parallelism& whole) {
  const Machine& machine = lowered.machine;
  const double fills = std::floor(machine.compute_units / whole.workgroups);
  double chosen = std::clamp(fills, 1.0, lowered.launch.most_parts);
  OpPrice best = price_way(lowered, {chosen > 1 ? split_along_k(machine, whole, chosen) : whole, chosen});
  const LeastOfSplits least(lowered, whole, best);
  const auto consider = [&](double parts, const Parallelism& parallel) {
    const Way way{parallel, parts};
    if (parts == chosen || least.exceed(best.seconds * kRounding, way)) return;
    const OpPrice price = price_way(lowered, way);
    if (price.seconds > best.seconds || (price.seconds == best.seconds && parts > chosen)) return;
    best = price;
    chosen = parts;
  };
  consider(1, whole);
  const Seconds enough = best.seconds * kRounding;
  for_each_split(machine, whole, least.fewest(enough), least.most(enough), consider);
  return best;
}

}  // namespace dculab::sim

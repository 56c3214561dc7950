// What one step plan costs on a machine, and why.
//
//   op    = launches * launch + rounds * workgroup start          (launch; a CPU op that one thread does has none)
//         + waits for the block table * look-up / concurrent workgroups    (sim/memory/table_look_up)
//         + loads that wait for one another * latency of the last cache
//         + split-k reduction of a product split along k          (way_price.hpp)
//         + DRAM's bytes / bandwidth, of a kernel that hides none of it     (lower::Overlap::dram_in_turn; in_turn)
//         + cold share * bytes that caches keep between steps / cold-miss bandwidth  (sim/memory/cache_pollution.hpp)
//         + smooth maximum of: compute, every (other) memory level's bytes / bandwidth, latency; arithmetic hides some
//           levels wholly, whose time is then the larger of the two
//   hidden = memory levels from which the kernel fetches its next tile while it multiplies this one (lower::Overlap): a
//            GPU's matmul the caches; on Hopper, where a copy engine serves warps that only multiply, all, attention
//            too
//   latency = bytes read * T_eff / bytes in flight
//   step  = max(sum over ops of count * op, launching) + host per step + host per sequence * sequences + sampling
//   launching = kernels * host per kernel, of a step that is not replayed as a graph (Stack::graphs)
//   sampling = per step + logits * per logit, where only the likeliest tokens can be drawn (StepPlan::filtered_logits)
//
// A collective of the devices that share the model takes what sim/cost/exchange_time.hpp says, and nothing else.
// On a CPU machine the devices are processes, each with its share of it (sim/hardware/process_share.hpp).
// How a kernel does an op (tiles, registers, instructions) is lower/'s; here is what that costs.
// The bound is the largest single term. No price is below its floor: bytes at each level / that level's peak
// bandwidth, and FLOP / peak. Laws, one file each: sim/memory/{traffic,reuse,hit_rate,bandwidth}.hpp,
// sim/compute/{parallelism,split_k,peak,compute_time}.hpp, sim/cost/smooth_max.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/step_plan.hpp"
#include "core/units.hpp"
#include "sim/compute/parallelism.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/bandwidth.hpp"

namespace dculab::sim {

enum class BoundKind : std::uint8_t { compute, memory, latency, launch, exchange };

struct Bound {
  BoundKind kind = BoundKind::launch;
  // Of Machine::memory, when kind is memory; when it is latency, the shared level that too few workgroups draw on, if
  // any.
  std::size_t level = 0;

  friend bool operator==(const Bound&, const Bound&) = default;
};

// "compute", "latency", "launch", "exchange" between devices, or the name of the memory level.
[[nodiscard]] std::string_view name(Bound bound, const Machine& machine);

// What one op costs. All figures are for one execution.
struct OpPrice {
  int count = 1;  // executions in the step
  Seconds seconds;
  Bound bound;
  double kernels = 0;         // launched
  Seconds launch;             // kernel launches and workgroup starts
  Seconds lookups;            // following block tables
  Seconds chain;              // loads that wait for one another: combining split contexts
  Seconds cold_misses;        // of caches that others have driven its weights and KV out of
  Seconds split_k_reduction;  // the sums of a product split along k; its bound is the last cache
  Seconds compute;
  Seconds memory;   // of the slowest level
  Seconds in_turn;  // DRAM's, of a kernel that hides none of it
  Seconds latency;  // waiting with too few bytes in flight
  Seconds floor;
  double taken_units =
      0;  // of an exchange beside other kernels: the share of the compute units that it takes from them
  Seconds effective_latency;             // T_eff
  PerLevel<Bytes> bytes{};               // that reach each level
  PerLevel<double> hit_rate{};           // of those; 1 in DRAM
  PerLevel<BytesPerSecond> bandwidth{};  // that Little's law leaves of each level's peak
  Parallelism parallel;

  [[nodiscard]] Seconds all_executions() const { return count * seconds; }
};

struct StepPrice {
  Seconds seconds;
  Seconds host;              // between steps, and for how long the device waits for kernels to be launched
  Seconds sampling;          // finding the tokens that can be drawn, on the device
  std::vector<OpPrice> ops;  // [plan.ops.size()]
};

// What limits most of the step: the bound with the largest share of its time.
[[nodiscard]] std::string step_bound(const StepPrice& price, const Machine& machine);

// Of the step, what the devices that share the model spend on exchanging results.
[[nodiscard]] Seconds exchange_time(const StepPrice& price);

// Distinct bytes of weights and KV that a step touches: how far apart two uses of the same weight are.
[[nodiscard]] Bytes step_footprint(const StepPlan& plan);

// One op of `plan`, where `footprint` bytes of weights and KV pass between two executions with the same operands. A
// kernel that is benchmarked alone: footprint = what it touches. Nothing is launched beside the plan's kernels, as a
// program does in its steps (stack.kernels_per_op, .reached.counted_kernels). Precondition: problems(machine) is empty.
[[nodiscard]] OpPrice price_op(const Machine& machine, const StepPlan& plan, const Op& op, Bytes footprint);

// A step that finds `cold_share` (Batch) of what the caches keep between steps gone, where others, of a draft model or
// of the model it drafts for, touch `beside` bytes of weights and KV between two such steps. Re-uses `price`'s storage.
// For sweeps and serving loops.
void price_step(const Machine& machine, const StepPlan& plan, double cold_share, StepPrice& price, Bytes beside = {});

// As cold as plan.batch says.
void price_step(const Machine& machine, const StepPlan& plan, StepPrice& price);
[[nodiscard]] StepPrice price_step(const Machine& machine, const StepPlan& plan);

}  // namespace dculab::sim

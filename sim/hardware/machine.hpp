// A machine as the simulator sees it: compute units, an ordered list of memory levels, and what it costs to start work.
// CPUs are machines too. Files are `hwmodels/*.yaml`, read by config/machine_file.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dtype.hpp"
#include "core/kv/retention.hpp"
#include "core/units.hpp"
#include "lower/device.hpp"
#include "sim/hardware/power.hpp"
#include "sim/hardware/stack.hpp"

namespace dculab::sim {

using lower::WaveResources;

// Where a figure comes from, the surest first: published, measured on this machine, derived from other measurements on
// it or from those of a card with the same die, or no source at all. Reports list what is inferred or assumed.
enum class Evidence : std::uint8_t { spec, measured, inferred, assumed };

[[nodiscard]] constexpr bool is_uncertain(Evidence evidence) { return evidence >= Evidence::inferred; }

// Who shares one instance of a memory level.
enum class Scope : std::uint8_t { compute_unit, device };

inline constexpr std::size_t kMaxMemoryLevels = 6;

// One level of the memory hierarchy, fastest first; the last level is DRAM.
struct MemoryLevel {
  std::string name;  // "L1", "L2", "L3", "DRAM"
  Scope scope = Scope::device;
  Bytes size;                // of one instance; for DRAM the device memory
  Bytes line;                // transfer granule
  BytesPerSecond bandwidth;  // peak read, all instances together
  Seconds latency;           // load-to-use, unloaded
  double outstanding = 0;    // lines in flight that one compute unit can have towards this level; 0 = not limiting
  // Bandwidth one compute unit can draw alone; 0 = its share, bandwidth / compute units.
  BytesPerSecond bandwidth_per_unit;
  Seconds retention_time{};  // until 1/e is left of what is not used again, among other tenants' data; 0: for good
  int ways = 0;              // lines of a set of the cache; 0 = not known, see sim/memory/set_associative_cache.hpp
  int channels = 0;          // slices of a cache, channels of DRAM; 0 = not stated: then no figure follows them
};

// Of which inputs of a design a figure is the product.
enum class Follows : std::uint8_t {
  units_and_clock,     // rate: FLOP or bytes per compute unit and clock
  channels_and_clock,  // rate: bytes per channel of the level and clock
  channels,            // rate: bytes per second and channel of the level
  clock                // rate: clocks of a latency; what it has beyond them stays
};

// How a figure follows from the design. What the figure has come to stands in the machine itself: it is a share of the
// product, 1 where no other value was published or measured.
struct Derivation {
  Follows follows = Follows::units_and_clock;
  double rate = 0;         // in core units
  bool is_stated = false;  // published or measured: it would stay if what it follows turned out to be wrong

  friend bool operator==(const Derivation&, const Derivation&) = default;
};

// What a scenario made of a machine, by key.
struct Redesign {
  std::vector<std::string> set;
  std::vector<std::string> followed;
  std::vector<std::string> stayed;  // peaks and figures of memory that follow none of those
};

// Throughput of the instruction that an op of a given dtype would use.
struct Peak {
  FlopsPerSecond vector;                 // FMA on vector units
  std::optional<FlopsPerSecond> matrix;  // matrix cores, where there are any
};

// Which kernel multiplies: how the weights are stored, and how it takes the activations.
struct MatmulKernel {
  Dtype weights = Dtype::f32;
  ActivationMode activations = ActivationMode::exact;

  friend auto operator<=>(const MatmulKernel&, const MatmulKernel&) = default;
};

// "int4_exact", "int8_int8": weights, then activations. The second reads what the first writes.
[[nodiscard]] std::string name(MatmulKernel kernel);
[[nodiscard]] std::optional<MatmulKernel> parse_matmul_kernel(std::string_view text);

// What a kernel reaches on all compute units together with its operands in a cache, by rows of activations.
// Dequantising, rounding and scaling are included: FLOP are those of the product alone.
using RateByRows = std::map<int, FlopsPerSecond>;

// Share of DRAM's peak bandwidth, in (0, 1], at which a kernel gets through weights that lie there, on all compute
// units together, by rows of activations: all that holds it up is in it.
using ShareByRows = std::map<int, double>;

// In-features of the weights that both are measured with, and of the `short` ones: each row of weights costs something
// however many it has, so kernels reach less of what they can where it is short.
inline constexpr int kLongRow = 2048;
inline constexpr int kShortRow = 512;

struct Overheads {
  Seconds kernel_launch;      // from one kernel's end to the next kernel's start (CPU: fork and join of the threads)
  Seconds host_per_step;      // scheduler, sampling, transfers between two steps
  Seconds host_per_sequence;  // the same, per sequence of the batch
  // A workgroup's (on a CPU: a task's) prologue and epilogue: arguments, first dependent loads, dispatch.
  Seconds workgroup_start{100e-9};
  // Overhead in the time of a kernel that was timed on its own: the events around it, or the launch of a graph with
  // nothing else in it. No part of a step.
  Seconds timed_call{5e-6};
};

// Shares of the peaks that streams through memory reach, each in (0, 1]: of the hardware, whatever runs there. Defaults
// are priors; calibration replaces them.
struct Sustained {
  double dram_bandwidth = 0.85;  // streaming reads; of matmul_dram_shares where those are known
  double cache_bandwidth = 0.80;
  // Of DRAM's peak: how fast a step fetches what other tenants drove out of a cache, on top of all else it does. The
  // prior is what the engine reached on two virtual cores of an AMD EPYC.
  double cold_miss_bandwidth = 0.5;
  double peer_link = 0.7;  // of peer_link, by the messages of collectives; the prior is NVLink's on A100 and H100
};

// Least and largest value of one feature of the steps that a machine was calibrated on.
struct Range {
  double low = 0;
  double high = 0;
};

// Whose kernels ran in the steps that a machine was calibrated on.
struct SeenFormats {
  std::set<Dtype> weights;
  std::set<ActivationMode> activations;
  std::set<Dtype> kv_cache;
  std::set<RetentionPolicy> kv_retention;
};

// Prices that are told apart by how well they hold.
enum class PriceKind : std::uint8_t { product, attention, exchange, hardware, step };
inline constexpr std::array<std::pair<std::string_view, PriceKind>, 5> kPriceKinds{{
    {"product", PriceKind::product},
    {"attention", PriceKind::attention},
    {"exchange", PriceKind::exchange},
    {"hardware", PriceKind::hardware},
    {"step", PriceKind::step},
}};

// How well prices of a stack hold on a machine, from how well they did where they were left out of a fit.
struct PointIntervals {
  int rows = 0;                         // measured there, of this stack
  std::map<PriceKind, double> factors;  // a measurement lies in [prediction / factor, prediction * factor]
};

// What calibration leaves for later predictions: how wide their intervals must be, and where that was found out. Either
// of steps of the machine itself or of points that others published.
struct Calibration {
  int held_out_steps = 0;
  double coverage = 0;                   // of the interval, e.g. 0.9
  double interval_factor = 1;            // a measurement lies in [prediction / factor, prediction * factor]
  std::map<std::string, Range> domain;   // by feature, see sim/calibration/confidence.hpp
  std::optional<SeenFormats> formats{};  // none: of a file that does not say
  // Of points: by stack, program or kAnyStack, the nearest counts.
  std::map<std::string, PointIntervals> intervals{};
};

// A device, which decides how ops are run, with the figures that say what that costs.
struct Machine : lower::Device {
  std::string name;
  std::string description;
  Hertz clock;
  std::map<std::string, Hertz> clock_states;        // others that it was measured or published at, by name
  std::map<Dtype, Peak> peaks;                      // by dtype of the multiplied values
  std::map<MatmulKernel, RateByRows> matmul_rates;  // of the kernels that were measured
  std::map<MatmulKernel, ShareByRows> matmul_dram_shares;
  std::map<MatmulKernel, RateByRows> short_matmul_rates;  // optional beside the long ones
  std::map<MatmulKernel, ShareByRows> short_matmul_dram_shares;
  std::vector<MemoryLevel> memory;  // fastest first, DRAM last
  Overheads overheads;
  Sustained sustained;
  std::map<std::string, Reached> reached;          // by stack, program or kAnyStack: what `sources` cites, see stack_on
  Stack stack;                                     // what runs on it: our own kernels, unless told otherwise
  std::optional<BytesPerSecond> host_link;         // one direction
  std::optional<BytesPerSecond> peer_link;         // one direction, to all peers together
  std::optional<BytesPerSecond> single_peer_link;  // to one of them; absent: all of peer_link, as through a switch
  std::optional<Seconds> peer_latency;             // one hop of a message of a few bytes
  std::optional<Seconds> collective_start;         // what an all-reduce of a few bytes takes beside its hops
  std::optional<BytesPerSecond> network_link;  // to other servers, one direction: this device's share of the adapters
  std::optional<Seconds> network_latency;      // one hop of a message of a few bytes
  Power power;
  std::optional<double> price_per_hour;  // of a device, in USD
  std::optional<Calibration> calibration;
  std::map<std::string, Derivation> derivations;  // by key: "peaks.f16.vector", "memory.L2.bandwidth"
  // Compute units of the machine that this one was made of by changing their number; 0 = it was not. See sharing_units.
  int stated_units = 0;
  std::optional<Redesign> redesign;
  std::vector<std::string> assumed;            // keys whose evidence is `inferred` or `assumed`
  std::map<std::string, std::string> sources;  // key -> "kind: source"

  [[nodiscard]] const MemoryLevel& dram() const { return memory.back(); }
};

// Machines of one family are built alike, as far as their files say: "compute capability 8.0", "gfx90a"; one that says
// neither is alone.
[[nodiscard]] std::string family_of(const Machine& machine);

// Everything that makes the machine unusable, one sentence each; empty when it is sound.
[[nodiscard]] std::vector<std::string> problems(const Machine& machine);

}  // namespace dculab::sim

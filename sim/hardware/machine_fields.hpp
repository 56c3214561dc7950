// The figures of a machine, one entry each: adding one is one entry here. Those of the stack that runs on it are in
// sim/hardware/stack_fields.hpp.
#pragma once

#include <array>

#include "sim/hardware/figure_field.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

inline constexpr FigureTraits kRequired{.necessity = Necessity::required};

inline constexpr auto kDesign = std::to_array<FigureField<Machine>>({
    {"compute_units", &Machine::compute_units, "CUs, SMs, or CPU threads", kRequired},
    {"clock", &Machine::clock, "that the peaks and cycle counts belong to", kRequired},
});

// Of `clock_states`, by the names of states.
inline constexpr FigureInfo kClockState = figure_info<Hertz>(
    "<name>",
    "other clocks that it was measured or published at: a boost, a device query, a power limit; names of small "
    "letters, digits and `_`",
    {.absent = "none"});

// What the links to other devices do.
inline constexpr auto kLinks = std::to_array<FigureField<Machine>>({
    {"host_link",
     &Machine::host_link,
     "one direction; says that host and device memory are separate",
     {.absent = "one memory"}},
    {"peer_link",
     &Machine::peer_link,
     "one direction, to all peers together: NVLink, xGMI, Infinity Fabric, else PCIe. Of a CPU: the rate at which a "
     "process gets through the slots of shared memory that it reads in an exchange, its own too",
     {.absent = "none"}},
    {"peers",
     &Machine::peers,
     "other devices of the server that are reached at this rate; of a CPU other processes, as many as were probed",
     {.absent = "no limit is known", .scaling = Scaling::none}},
    {"direct_peers",
     &Machine::direct_peers,
     "those of them that are one hop away: by a link of their own, or through a switch",
     {.absent = "none", .scaling = Scaling::none}},
    {"single_peer_link",
     &Machine::single_peer_link,
     "one direction, to one peer that has a link of its own",
     {.absent = "all of `peer_link`"}},
    {"peer_latency",
     &Machine::peer_latency,
     "one hop of a message of a few bytes, as a collective library's ring sees it; of a CPU until all processes have "
     "met",
     {.bounds = kLatencyBounds, .absent = "0 s"}},
    {"collective_start",
     &Machine::collective_start,
     "what an all-reduce of a few bytes takes beside its hops",
     {.bounds = kLatencyBounds, .absent = "NCCL's 6.6 us, RCCL's 12 us, of processes nothing"}},
    {"network_link",
     &Machine::network_link,
     "one direction, to other servers: this device's share of the adapters of a usual server; 200 Gb/s are 25 GB/s",
     {.absent = "none"}},
    {"network_latency",
     &Machine::network_latency,
     "one hop of a message of a few bytes to another server",
     {.bounds = kLatencyBounds, .absent = "0 s"}},
});

// What a device draws, without the server around it.
inline constexpr auto kPower = std::to_array<FigureField<Power>>({
    {"idle",
     &Power::idle,
     "with a model in memory and its clocks up, between two steps",
     {.absent = "no energy is predicted"}},
    {"memory_bound",
     &Power::memory_bound,
     "while DRAM streams at the rate that it sustains and little is computed",
     {.absent = "no energy is predicted"}},
    {"compute_bound",
     &Power::compute_bound,
     "while the matrix units are busy: the limit of the board, as a rule",
     {.absent = "no energy is predicted"}},
});

inline constexpr auto kPrice = std::to_array<FigureField<Machine>>({
    {"price_per_hour",
     &Machine::price_per_hour,
     "what an hour of one device costs, its part of the server included",
     {.unit = unit::usd, .bounds = between(1e-6, 1e6), .absent = "no price is predicted"}},
});

inline constexpr auto kPeak = std::to_array<FigureField<Peak>>({
    {"vector", &Peak::vector, "of the vector units", kRequired},
    {"matrix", &Peak::matrix, "of the matrix units, dense", {.absent = "there are none"}},
});

// What is measured of matmul kernels: of each, by its weights, activations and rows.
inline constexpr FigureInfo kMatmulRates =
    figure_info<FlopsPerSecond>("matmul_rates",
                                "what the matmul kernel for these weights (`f16`, `int4`, ...) and activations "
                                "(`exact`, `int8`, `bf16`) reaches with m rows of activations and its operands in a "
                                "cache, all compute units together, dequantising included; `probe` writes them",
                                {.absent = "a share of the peak"});
inline constexpr FigureInfo kMatmulShares = figure_info<double>(
    "matmul_dram_shares",
    "share of DRAM's peak bandwidth at which that kernel gets through weights that lie there; needs the kernel's "
    "`matmul_rates`; `probe` writes them",
    {.absent = "`sustained.dram_bandwidth`", .of = "memory.DRAM.bandwidth", .scaling = Scaling::to_all});
inline constexpr FigureInfo kShortMatmulRates =
    figure_info<FlopsPerSecond>("short_matmul_rates",
                                "the rate with weights of 512 in-features, where the one above is of 2048: other "
                                "numbers of in-features are predicted by both; needs that of the same kernel",
                                {.absent = "as `matmul_rates`"});
inline constexpr FigureInfo kShortMatmulShares = figure_info<double>(
    "short_matmul_dram_shares", "the share with weights of 512 in-features; needs that of the same kernel",
    {.absent = "as `matmul_dram_shares`", .of = "memory.DRAM.bandwidth", .scaling = Scaling::to_all});
inline constexpr std::array kMatmuls{&kMatmulRates, &kMatmulShares, &kShortMatmulRates, &kShortMatmulShares};

// Channels come before the bandwidth that may follow them.
inline constexpr auto kLevel = std::to_array<FigureField<MemoryLevel>>({
    {"size", &MemoryLevel::size, "of one instance", kRequired},
    {"line",
     &MemoryLevel::line,
     "smallest piece that is fetched",
     {.necessity = Necessity::required, .scaling = Scaling::power_of_two}},
    {"channels",
     &MemoryLevel::channels,
     "slices of a shared cache, channels of DRAM",
     {.absent = "nothing follows them"}},
    {"bandwidth", &MemoryLevel::bandwidth, "peak read of all instances together", kRequired},
    {"latency",
     &MemoryLevel::latency,
     "load to use, unloaded",
     {.bounds = kLatencyBounds, .necessity = Necessity::required}},
    {"outstanding",
     &MemoryLevel::outstanding,
     "lines that one compute unit can have in flight",
     {.unit = "lines", .bounds = kCountsFromZero, .absent = "not limiting"}},
    {"bandwidth_per_unit",
     &MemoryLevel::bandwidth_per_unit,
     "that one compute unit can draw alone",
     {.absent = "its share"}},
    {"kept_for",
     &MemoryLevel::retention_time,
     "retention time, of a cache shared with other tenants: how long until 1/e of what is not read again is left. "
     "`probe` "
     "writes it",
     {.bounds = kLatencyBounds, .absent = "for good"}},
    {"ways",
     &MemoryLevel::ways,
     "lines of a set. Only the [cache replay](../docs/reference/cache-replay.md) asks",
     {.absent = "16", .scaling = Scaling::none}},
});

// What is handed out in pieces of this size, or is what it is.
inline constexpr FigureTraits kGiven{.necessity = Necessity::required, .scaling = Scaling::none};

inline constexpr auto kWaves = std::to_array<FigureField<WaveResources>>({
    {"wave_size", &WaveResources::wave_size, "lanes of a wave", kGiven},
    // The product of these two counts waves.
    {"simds_per_unit",
     &WaveResources::simds_per_unit,
     "SIMDs of a compute unit",
     {.bounds = between(1, 1024), .necessity = Necessity::required, .scaling = Scaling::none}},
    {"max_waves_per_simd",
     &WaveResources::max_waves_per_simd,
     "waves in flight on a SIMD",
     {.bounds = between(1, 1024), .necessity = Necessity::required}},
    {"vgprs_per_lane", &WaveResources::vgprs_per_lane, "32-bit registers: the file of one SIMD, per lane", kRequired},
    {"vgpr_granule", &WaveResources::vgpr_granule, "32-bit registers: how the file is handed out", kGiven},
    {"max_workgroups_per_unit", &WaveResources::max_workgroups_per_unit, "in flight on a compute unit", kRequired},
    {"lds_per_unit", &WaveResources::lds_per_unit, "LDS, or shared memory, of a compute unit", kRequired},
    {"lds_granule", &WaveResources::lds_granule, "how LDS is handed out", kGiven},
});

inline constexpr auto kOverheads = std::to_array<FigureField<Overheads>>({
    {"kernel_launch",
     &Overheads::kernel_launch,
     "from one kernel's end to the next kernel's start",
     {.necessity = Necessity::required, .prior = time_prior(14, 0.70, Owner::device, 0.3)}},
    {"host_per_step",
     &Overheads::host_per_step,
     "what the host does between two steps",
     {.prior = time_prior(17, 1.00, Owner::host)}},
    {"host_per_sequence",
     &Overheads::host_per_sequence,
     "what the host does between two steps for each sequence",
     {.prior = time_prior(18, 1.00, Owner::host)}},
    {"workgroup_start",
     &Overheads::workgroup_start,
     "prologue and epilogue of a workgroup",
     {.prior = time_prior(15, 1.00, Owner::device, 0.3)}},
    {"timed_call",
     &Overheads::timed_call,
     "overhead in the time of a kernel that was timed on its own: the events around it, or the launch of a graph with "
     "nothing else in it; no part of a step",
     {.prior = time_prior(16, 0.70)}},
});

inline constexpr auto kSustained = std::to_array<FigureField<Sustained>>({
    {"dram_bandwidth",
     &Sustained::dram_bandwidth,
     "that streaming reads reach, whatever runs",
     {.of = "memory.DRAM.bandwidth", .prior = share_prior(5, 0.15)}},
    {"cache_bandwidth",
     &Sustained::cache_bandwidth,
     "that streams through caches reach, whatever runs",
     {.of = "memory[].bandwidth", .prior = share_prior(6, 0.40, Owner::device, 0.25)}},
    {"refill_bandwidth",
     &Sustained::cold_miss_bandwidth,
     "at which a step reads again what other tenants evicted from a cache",
     {.of = "memory.DRAM.bandwidth", .prior = share_prior(12, 0.50)}},
    {"peer_link",
     &Sustained::peer_link,
     "that messages between devices reach",
     {.of = "peer_link", .prior = share_prior(13, 0.30)}},
});

}  // namespace dculab::sim

// How much of the machine an op keeps busy: wave quantisation and balance.
//
//   slots            = compute units * workgroups per unit
//   rounds           = ceil(workgroups / slots)
//   concurrent       = workgroups / rounds                                  mean workgroups in flight
//   active units     = workgroups / ceil(workgroups / compute units)        mean units with work
//   drawing units    = compute units * workgroups / ((rounds - 1) * slots + max(workgroups of the last round, compute
//                      units))                                              whose share of shared levels is drawn
//   balance          = total walk / longest walk                            ragged attention: the longest one ends last
//   concurrent, active units, drawing units <= balance
//                active units <= balance / ceil(balance / compute units)   where workgroups are dealt out in turn, so
//                                                                          that long walks meet (Grid::is_dealt)
//
//   busy SIMDs       = min(1, concurrent * waves / (active units * SIMDs of a unit))           of the active units
//
// Workgroups on one unit share its pipes, so the tail of the last round is counted per unit, and workgroups per unit
// act through the bytes in flight. What all units share, they do not: of more workgroups than units, whose loads wait
// for one another, each draws as much as the others, wherever it runs, until the level delivers no more. So it is with
// our own attention (Launch::draws_alike): with two workgroups of decode attention on each SM an H200 takes 1.2 to 1.4
// times as long as with one on half of them (tests/data/traces/nvidia-h200). Published times of other programs are
// longer than that.
//
// A product of fewer tiles than slots is split further, as split_k.hpp says; a kernel that hands out rows fills the
// machine (lower/launch.hpp). On a CPU, an op that one thread finishes before the others are awake stays with the
// calling thread. Source of wave quantisation: NVIDIA, "Matrix multiplication background", section 3.
#pragma once

#include "lower/launch.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Who works on an op: all compute units, or on a CPU the calling thread alone, which needs no fork and join.
enum class Team : std::uint8_t { all, caller };

struct Parallelism {
  Team team = Team::all;
  double workgroups = 1;
  double workgroups_per_unit = 1;  // that fit at a time
  double waves_per_workgroup = 1;
  double rounds = 1;
  double concurrent = 1;
  double active_units = 1;
  double busy_simds = 1;  // share of their SIMDs that have a wave; on a CPU 1

  [[nodiscard]] double busy_units() const { return active_units * busy_simds; }
};

// Of a GPU's units that work.
[[nodiscard]] double busy_simds(const Machine& machine, const Parallelism& parallel);

// Of which the workgroups draw the share of what all units share: at most `concurrent`, and so at most the balance.
[[nodiscard]] double drawing_units(const Machine& machine, const Parallelism& parallel);

[[nodiscard]] Parallelism parallelism(const Machine& machine, const lower::Launch& launch, Team team = Team::all);

}  // namespace dculab::sim

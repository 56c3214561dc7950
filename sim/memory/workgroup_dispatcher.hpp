// In which order the waves of a launch make their accesses, where each compute unit holds a given number of workgroups.
//
// Workgroups start in launch order, one per compute unit in turn, wherever a place is free; a finished one frees its
// place at the end of the turn. In a turn every resident wave issues one instruction: the first waves of all units,
// then the second ones, and so on, so that units stay in step. Barriers, latencies and the caches' answers do not
// move a wave ahead or back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/address_trace.hpp"

namespace dculab::sim {

class WorkgroupDispatcher {
 public:
  // The trace is sound and outlives the dispatcher.
  WorkgroupDispatcher(const AddressTrace& trace, int compute_units, int workgroups_per_unit);

  // Calls issue(compute unit, accesses of one instruction) for every instruction of the trace.
  template <class Issue>
  void run(Issue issue) {
    for (start_workgroups(); !turn_.empty(); finish_turn()) {
      for (const std::uint32_t place : turn_) {
        Wave& wave = places_[place];
        const std::size_t begin = wave.next;
        wave.next = end_of_instruction(wave);
        issue(static_cast<int>(place % units_), std::span(accesses_ + begin, wave.next - begin));
        // Hundreds of waves take turns, more streams than a prefetcher follows.
        __builtin_prefetch(accesses_ + wave.next + kAccessesAhead);
      }
    }
  }

 private:
  struct Wave {
    std::size_t next = 0;
    std::size_t end = 0;  // == next: the place is free
  };
  static constexpr std::size_t kAccessesAhead = 3;

  [[nodiscard]] std::size_t end_of_instruction(const Wave& wave) const {
    std::size_t at = wave.next + 1;
    while (at < wave.end && accesses_[at].instruction == accesses_[wave.next].instruction) ++at;
    return at;
  }
  [[nodiscard]] std::size_t free_slot(std::size_t unit) const;  // slots_ if there is none
  [[nodiscard]] bool has_next();
  void start_workgroups();
  void finish_turn();

  const WaveAccess* accesses_;
  std::span<const std::size_t> wave_begin_;
  std::size_t waves_;  // of a workgroup
  std::size_t units_;
  std::size_t slots_;  // of a unit
  std::size_t next_workgroup_ = 0;
  std::size_t next_unit_ = 0;
  std::vector<Wave> places_;         // [slots, waves, units]
  std::vector<std::uint32_t> turn_;  // places whose wave has instructions left, ascending
};

}  // namespace dculab::sim

// Runs workgroups on the host: each lane runs alone, on a fibre, until it meets the others: at a barrier (the whole
// workgroup) or a shuffle (its wave).
//
// As on the hardware: no lane waits for one that has left, and a shuffle that reads from it gives 0 (AMD: what
// ds_bpermute returns for an inactive lane). Stricter than the hardware: the lanes of a wave must all wait at the same
// place, and shared memory starts as 0xFF bytes (NaN), so that forgotten barriers and initialisations show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/op.hpp"
#include "kernels/gpu/host/address_recorder.hpp"

namespace dculab::kernels::gpu::host {

// In which order the waves of a workgroup, and the lanes of a wave, get their turns.
enum class LaneOrder : std::uint8_t { forward, reversed, shuffled };

enum class HostMatrixCores : std::uint8_t { absent, present };

struct HostOptions {
  int wave_size = 64;  // 32 or 64
  LaneOrder order = LaneOrder::forward;
  std::uint64_t seed = 1;                                  // of LaneOrder::shuffled
  AddressRecorder* recorder = nullptr;                     // null: nothing is recorded
  HostMatrixCores matrix_cores = HostMatrixCores::absent;  // present: waves of 64 multiply with them
};

struct Grid {
  int x = 1, y = 1, z = 1;  // workgroups
  int threads = 64;         // of one workgroup, a multiple of nothing in particular

  [[nodiscard]] int workgroups() const { return x * y * z; }
};

// Runs `lane` once for every lane of the grid. Throws what a lane throws, and std::logic_error when lanes that belong
// together wait at different places; lanes that wait then are unwound.
void run_grid(const Grid& grid, const HostOptions& options, const std::function<void()>& lane);

// ---- What runs inside a lane. ----

struct LaneIndex {
  int thread = 0;  // in its workgroup
  int workgroup_x = 0, workgroup_y = 0, workgroup_z = 0;
};

// Of the lane that this thread runs; asked for all the time, hence not behind a call.
struct Running {
  const LaneIndex* lane = nullptr;
  const Grid* grid = nullptr;
  bool is_recorded = false;
  bool has_matrix_cores = false;
};
inline constinit thread_local Running running;

[[nodiscard]] inline const LaneIndex& lane_index() { return *running.lane; }
[[nodiscard]] inline const Grid& current_grid() { return *running.grid; }

// Clang must not copy a call of these to several places (GCC: cmake/DculabTargets.cmake).
#if defined(__clang__)
#define DCULAB_ONE_PLACE [[clang::convergent]]
#else
#define DCULAB_ONE_PLACE
#endif

DCULAB_ONE_PLACE void wait_for_workgroup();

// Hands `bits` to the wave and returns what lane `source` of the wave handed over (0 if it has left, or if source is
// no lane of the wave).
DCULAB_ONE_PLACE [[nodiscard]] std::uint64_t exchange(std::uint64_t bits, int source);
// The same of all lanes: all[i] becomes what lane i handed over, of 64.
DCULAB_ONE_PLACE void exchange_all(std::uint64_t bits, std::uint64_t* all);
// The lanes of the wave that hand over something else than 0.
DCULAB_ONE_PLACE [[nodiscard]] std::uint64_t ballot(bool vote);

// One instance per workgroup; `tag` tells the variables of a kernel apart.
[[nodiscard]] void* shared_variable(const void* tag, std::size_t bytes, std::size_t alignment);

// Bytes of shared memory that the last run_grid on this thread used per workgroup.
[[nodiscard]] std::size_t last_shared_bytes();

// Where it is called from tells the instructions of a kernel apart: call it through note_access().
DCULAB_ONE_PLACE void record_access(const void* address, std::uint32_t bytes, AccessKind kind);

[[gnu::always_inline]] inline void note_access(const void* address, std::uint32_t bytes, AccessKind kind) {
  if (running.is_recorded) record_access(address, bytes, kind);
}

}  // namespace dculab::kernels::gpu::host

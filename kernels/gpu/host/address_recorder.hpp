// Notes every access of a launch to global memory, merged per wave instruction.
//
// Lanes run one after another, so the accesses of one wave instruction are found again by where they stand in the
// kernel (the return address), how often their lane has been there since the wave last met (at a barrier or shuffle).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/address_trace.hpp"

namespace dculab::kernels::gpu::host {

class AddressRecorder {
 public:
  // Memory that kernels may touch. Everything else is a mistake of the kernel: record() throws std::out_of_range.
  void add_buffer(const void* data, std::size_t bytes, OperandRole role);
  void remove_buffer(const void* data);

  // Called by the runtime: before and around a launch, and whenever the lanes of a wave have met.
  void name_launch(std::string kernel) { kernel_ = std::move(kernel); }
  void begin_launch(int workgroups, int waves_per_workgroup, int wave_size);
  void record(int wave_of_launch, int lane, const void* site, const void* address, std::uint32_t bytes,
              AccessKind kind);
  void end_epoch(int wave_of_launch);
  void end_launch();

  // Of the last launch, under a name of the caller's, or of all since the last time, in order. The recorder is empty of
  // accesses afterwards, and keeps its buffers.
  [[nodiscard]] AddressTrace take(std::string kernel);
  [[nodiscard]] std::vector<AddressTrace> take_launches();

 private:
  struct Buffer {
    std::uintptr_t begin = 0;
    TracedBuffer traced;
  };
  struct LaneAccess {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
  };
  // One instruction of a wave within an epoch: a site, and the n-th time there.
  struct Instruction {
    const void* site = nullptr;
    std::uint32_t occurrence = 0;
    AccessKind kind = AccessKind::load;
    std::vector<LaneAccess> lanes;
  };
  struct Visit {
    const void* site = nullptr;
    std::uint32_t count = 0;
  };
  struct Wave {
    std::uint32_t next_instruction = 0;
    std::vector<WaveAccess> accesses;
  };

  [[nodiscard]] std::uint64_t traced_address(std::uintptr_t address, std::uint32_t bytes) const;
  [[nodiscard]] Instruction& instruction_at(const void* site, std::uint32_t occurrence, AccessKind kind);
  void merge(Instruction& instruction, Wave& wave);

  std::vector<Buffer> buffers_;  // by begin
  std::uint64_t next_address_ = 0;
  int wave_size_ = 64, waves_per_workgroup_ = 1, workgroups_ = 0;
  std::vector<Wave> waves_;             // of the launch
  std::vector<AddressTrace> launches_;  // that have ended
  std::string kernel_;                  // of the launch
  // Of the epoch that one wave is in; the runtime runs a wave until its lanes meet before it turns to the next.
  int open_wave_ = -1;
  std::vector<Instruction> epoch_;
  std::size_t epoch_size_ = 0;  // instructions of epoch_ in use: their vectors are kept
  std::size_t hint_ = 0;        // where the last lane's instruction was found
  int lane_ = -1;
  std::vector<Visit> visits_;  // of the lane that runs
};

}  // namespace dculab::kernels::gpu::host

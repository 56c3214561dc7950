// Moves KV blocks between the pools of a device and of the host, neighbouring blocks in one copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/gpu/device.hpp"

namespace dculab::kernels::gpu {

struct BlockPair {
  std::int32_t source = 0, destination = 0;
};

// Blocks that are neighbours, in the same order, on both sides.
struct BlockRun {
  std::int32_t source = 0, destination = 0;  // the first of them
  std::int32_t count = 0;
};

// The runs of the pairs, whose order does not matter: no block is a destination twice.
[[nodiscard]] std::vector<BlockRun> block_runs(std::span<const BlockPair> pairs);

enum class SwapDirection : std::uint8_t { to_device, to_host, within_device };

struct SwapBlocks {
  const void* source = nullptr;      // [num_blocks, block_bytes]
  void* destination = nullptr;       // [num_blocks, block_bytes]
  std::span<const BlockPair> pairs;  // no block is both a source and a destination within_device
  std::size_t block_bytes = 0;
  SwapDirection direction = SwapDirection::to_device;
};

// Returns before it is done (see Device); memory of the host is the device's to reach (Device::allocate_on_host).
void swap_blocks(Device& device, const SwapBlocks& args);

}  // namespace dculab::kernels::gpu

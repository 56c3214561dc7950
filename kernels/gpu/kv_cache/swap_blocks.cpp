#include "kernels/gpu/kv_cache/swap_blocks.hpp"

#include <algorithm>

namespace dculab::kernels::gpu {

std::vector<BlockRun> block_runs(std::span<const BlockPair> pairs) {
  std::vector<BlockPair> sorted(pairs.begin(), pairs.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const BlockPair& a, const BlockPair& b) { return a.destination < b.destination; });
  std::vector<BlockRun> runs;
  for (const BlockPair& pair : sorted) {
    const bool continues = !runs.empty() && pair.source == runs.back().source + runs.back().count &&
                           pair.destination == runs.back().destination + runs.back().count;
    if (continues)
      ++runs.back().count;
    else
      runs.push_back({pair.source, pair.destination, 1});
  }
  return runs;
}

void swap_blocks(Device& device, const SwapBlocks& args) {
  for (const BlockRun& run : block_runs(args.pairs)) {
    const auto offset = [&](std::int32_t block) { return static_cast<std::size_t>(block) * args.block_bytes; };
    const void* source = static_cast<const std::byte*>(args.source) + offset(run.source);
    void* destination = static_cast<std::byte*>(args.destination) + offset(run.destination);
    const std::size_t bytes = offset(run.count);
    if (args.direction == SwapDirection::to_device) device.upload(destination, source, bytes);
    if (args.direction == SwapDirection::to_host) device.start_download(destination, source, bytes);
    if (args.direction == SwapDirection::within_device) device.copy(destination, source, bytes);
  }
}

}  // namespace dculab::kernels::gpu

// The shapes that gpu_bench times, a device with what its copies reach, and a KV cache that no GPU cache can hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "engine/kv/random_values.hpp"
#include "engine/memory/device_memory.hpp"
#include "engine/probe/device_timing.hpp"
#include "kernels/gpu/device.hpp"

namespace dculab::bench {

namespace gpu = kernels::gpu;
using engine::DeviceMemory;

struct Matrix {
  const char* name;
  int n, k;  // y[m, n] = x[m, k] w[n, k]^T
};

struct Shapes {
  int heads, head_dim, block_size, group_size;
  std::vector<int> batches, contexts, kv_heads;
  std::vector<Matrix> matrices;
  std::vector<int> rows;     // of products with many
  std::vector<int> prompts;  // tokens
  int prefill_kv_heads;
  double cold_bytes;  // that pass between two uses of the same memory
};

inline const Shapes kReal{
    32,
    128,
    16,
    128,
    {16, 32, 64},
    {4096, 16384},
    {1, 2, 4, 8, 16, 32},
    {{"qkv_proj", 6144, 4096}, {"o_proj", 4096, 4096}, {"gate_up_proj", 28672, 4096}, {"down_proj", 4096, 14336}},
    {32, 256, 2048},
    {1024, 4096},
    8,
    512.0 * (1 << 20)};
inline const Shapes kTiny{4, 64, 16, 32, {1, 2}, {17, 40}, {1, 2, 4}, {{"tiny", 64, 64}}, {9}, {20}, 2, 0};

// A device, and what its copies reach.
struct Bench {
  std::shared_ptr<gpu::Device> device;
  const Shapes& shapes;
  engine::DeviceEffort effort;
  BytesPerSecond copy;

  [[nodiscard]] bool has_room(double bytes) const {
    const double free = device->info().free_memory.value();
    return free <= 0 || bytes < 0.9 * free;
  }
  [[nodiscard]] DeviceMemory random(std::size_t bytes) const {
    DeviceMemory memory(device, bytes);
    engine::fill_randomly(*device, memory.as(), bytes, Dtype::f16, 1);
    return memory;
  }
  template <typename T>
  [[nodiscard]] DeviceMemory upload(const std::vector<T>& values) const {
    DeviceMemory memory(device, values.size() * sizeof(T));
    device->upload(memory.as(), values.data(), values.size() * sizeof(T));
    device->synchronize();
    return memory;
  }
  // Copies of something of `bytes`, so that it is cold again when its turn comes.
  [[nodiscard]] int copies(double bytes) const {
    return std::max(1, static_cast<int>(std::ceil(shapes.cold_bytes / bytes)));
  }
  template <typename Launch>
  [[nodiscard]] Seconds time(Launch&& launch) const {
    return engine::median_launch_time(*device, effort, launch);
  }
};

inline std::size_t halves(double count) { return static_cast<std::size_t>(2 * count); }

inline double share_of_copy(const Bench& bench, double bytes, Seconds time) { return Bytes(bytes) / time / bench.copy; }

// The KV cache of `copies` layers, its blocks scattered over the pool.
class PagedCache {
 public:
  PagedCache(const Bench& bench, int batch, int context, int kv_heads)
      : max_blocks_((context + bench.shapes.block_size - 1) / bench.shapes.block_size),
        num_blocks_(batch * max_blocks_),
        bytes_(4.0 * num_blocks_ * bench.shapes.block_size * kv_heads * bench.shapes.head_dim),
        tables_(bench.upload(scattered(num_blocks_))),
        contexts_(bench.upload(std::vector<std::int32_t>(static_cast<std::size_t>(batch), context))) {
    for (int layer = 0; layer < 2 * bench.copies(bytes_); ++layer) pools_.push_back(bench.random(halves(bytes_ / 4)));
    view_ = {.k = nullptr,
             .v = nullptr,
             .dtype = Dtype::f16,
             .num_blocks = num_blocks_,
             .num_kv_heads = kv_heads,
             .block_size = bench.shapes.block_size,
             .head_dim = bench.shapes.head_dim};
  }

  [[nodiscard]] kernels::KvCacheView layer(int index) const {
    const std::size_t first = 2 * static_cast<std::size_t>(index) % pools_.size();
    kernels::KvCacheView view = view_;
    view.k = pools_[first].as();
    view.v = pools_[first + 1].as();
    return view;
  }
  [[nodiscard]] int max_blocks() const { return max_blocks_; }
  [[nodiscard]] const std::int32_t* tables() const { return tables_.as<std::int32_t>(); }
  [[nodiscard]] const std::int32_t* contexts() const { return contexts_.as<std::int32_t>(); }

 private:
  static std::vector<std::int32_t> scattered(int count) {
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(count));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(1));
    return blocks;
  }

  int max_blocks_, num_blocks_;
  double bytes_;  // of K and V of one layer
  DeviceMemory tables_, contexts_;
  std::vector<DeviceMemory> pools_;
  kernels::KvCacheView view_;
};

}  // namespace dculab::bench

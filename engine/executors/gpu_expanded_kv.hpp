// K and V that latents of the cache expand to, on a device: of one sequence, and of as many heads at a time as fit into
// memory that is allocated once.
#pragma once

#include <memory>

#include "engine/memory/device_memory.hpp"
#include "engine/step/step_inputs.hpp"
#include "kernels/gpu/latent_args.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// A sequence whose latents are expanded, and the heads that they are expanded for.
struct GpuExpandedPart {
  int seq = 0;
  int first_head = 0, num_heads = 0;
};

// In F16, whatever the activations: attention of prefill over a cache of that format. The whole context, new tokens
// included, is expanded from what the cache holds of it, a piece of kExpandedPiece tokens at a time.
class GpuExpandedKv {
 public:
  // Nothing is allocated for a model without latents. `longest`: of its contexts; `most`: what K and V may take, unless
  // one head has more.
  GpuExpandedKv(const std::shared_ptr<kernels::gpu::Device>& device, const ModelShape& shape, Dtype activation,
                int longest, Bytes most);

  // Heads that are expanded at a time, of a context of `context` tokens.
  [[nodiscard]] int heads_at_once(const Mla& attention, int context) const;

  // `cache`: of latents; `block_table`: of the sequence, on the device; `product`: what multiplies rows of latents by
  // all rows of kv_b_proj.
  void expand(const Mla& attention, const GpuExpandedPart& part, const kernels::KvCacheView& cache,
              const std::int32_t* block_table, int context, const kernels::gpu::Matmul& product);

  // What the last expand() has made, and its block table.
  [[nodiscard]] kernels::KvCacheView cache() const;
  [[nodiscard]] const std::int32_t* block_table() const { return block_table_.as<std::int32_t>(); }

 private:
  std::shared_ptr<kernels::gpu::Device> device_;
  Dtype activation_;
  std::int64_t most_bytes_ = 0;
  int num_blocks_ = 0, num_heads_ = 0;  // of the last expand()
  DeviceMemory latents_, rows_, k_, v_, block_table_;
};

}  // namespace dculab::engine

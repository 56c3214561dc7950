// A GPU, as the engine drives it: memory, copies, times, and every kernel. Three builds of one source implement it:
// HIP (DCU, AMD), CUDA (NVIDIA) and the host, where each lane is a fibre.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/op.hpp"
#include "core/units.hpp"
#include "kernels/gpu/args.hpp"
#include "kernels/gpu/expert_args.hpp"
#include "kernels/gpu/kv/critical_blocks.hpp"
#include "kernels/gpu/kv/heavy_hitters.hpp"
#include "kernels/gpu/kv/kivi.hpp"
#include "kernels/gpu/kv/sinks.hpp"
#include "kernels/gpu/latent_args.hpp"

namespace dculab::kernels::gpu {

struct DeviceInfo {
  std::string name;  // "gfx906:sramecc+:xnack-, AMD Instinct MI50", "host build, waves of 64"
  int wave_size = 64;
  int compute_units = 0;
  Bytes memory;  // of the device
  Bytes free_memory;
};

// A point in the device's stream of work whose time is taken.
class TimeMark {
 public:
  virtual ~TimeMark() = default;
};

// One stream: what is launched runs in order, and returns before it is done. Memory that the caller hands over must
// stay until synchronize(). Throws InputError for what the kernels do not support (named, with what is supported)
// or what does not fit in memory, and std::runtime_error when the device fails. For use by one thread, the one that
// opened it.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual DeviceInfo info() const = 0;

  // Memory of the device, 256-byte aligned; contents are not defined. `holds` is for address traces.
  [[nodiscard]] virtual void* allocate(std::size_t bytes, OperandRole holds = OperandRole::activation) = 0;
  virtual void release(void* memory) noexcept = 0;
  // Memory of the host that the device reaches by itself: pages that stay where they are ("pinned"). Not cleared.
  [[nodiscard]] virtual void* allocate_on_host(std::size_t bytes) = 0;
  virtual void release_on_host(void* memory) noexcept = 0;
  virtual void upload(void* destination, const void* source, std::size_t bytes) = 0;    // from the host
  virtual void download(void* destination, const void* source, std::size_t bytes) = 0;  // to the host, waits for it
  // The same, but returns before it is done; the destination is memory of the host that the device can reach.
  virtual void start_download(void* destination, const void* source, std::size_t bytes) = 0;
  virtual void copy(void* destination, const void* source, std::size_t bytes) = 0;  // within the device
  virtual void fill(void* destination, int byte, std::size_t bytes) = 0;
  virtual void synchronize() = 0;

  [[nodiscard]] virtual std::unique_ptr<TimeMark> make_mark() = 0;
  virtual void record(TimeMark& mark) = 0;
  // Both recorded; waits for the second.
  [[nodiscard]] virtual Seconds between(const TimeMark& first, const TimeMark& second) = 0;

  virtual void embedding(const Embedding& args) = 0;
  virtual void rms_norm(const RmsNorm& args) = 0;
  virtual void layer_norm(const LayerNorm& args) = 0;
  virtual void rotary_embedding(const RotaryEmbedding& args) = 0;
  virtual void head_norm(const HeadNorm& args) = 0;
  virtual void residual_add(const ResidualAdd& args) = 0;
  virtual void soft_cap(const SoftCap& args) = 0;
  virtual void part_rotary_embedding(const PartRotaryEmbedding& args) = 0;
  virtual void gelu_and_mul(const GeluAndMul& args) = 0;
  virtual void silu_and_mul(const SiluAndMul& args) = 0;
  virtual void gelu(const Gelu& args) = 0;
  virtual void top_k(const TopK& args) = 0;

  virtual void reshape_and_cache(const ReshapeAndCache& args) = 0;
  virtual void copy_blocks(const CopyBlocks& args) = 0;

  virtual void paged_attention(const PagedAttention& args) = 0;
  virtual void prefill_attention(const PrefillAttention& args) = 0;

  virtual void quantize_groups(const KiviTokens& args) = 0;
  virtual void keep_residual(const KiviTokens& args) = 0;

  virtual void update_block_bounds(const UpdateBlockBounds& args) = 0;
  virtual void choose_critical_blocks(const ChooseCriticalBlocks& args) = 0;

  virtual void keep_sink_keys(const KeepSinkKeys& args) = 0;
  virtual void shift_sink_keys(const ShiftSinkKeys& args) = 0;
  virtual void attention_scores(const AttentionScores& args) = 0;

  virtual void latent_attention(const LatentAttention& args) = 0;
  virtual void gather_latents(const GatherLatents& args) = 0;
  virtual void store_expanded(const StoreExpanded& args) = 0;
  virtual void absorb_k(const Absorb& args) = 0;
  virtual void absorb_v(const Absorb& args) = 0;

  virtual void matmul(const Matmul& args) = 0;
  virtual void gptq_matmul(const GptqMatmul& args) = 0;
  virtual void int8_matmul(const Int8Matmul& args) = 0;
  virtual void quantize_rows(const QuantizeRows& args) = 0;

  virtual void route_tokens(const RouteTokens& args) = 0;
  virtual void expert_matmul(const ExpertMatmul& args) = 0;
  virtual void expert_gptq_matmul(const ExpertGptqMatmul& args) = 0;
  virtual void combine_experts(const CombineExperts& args) = 0;
};

}  // namespace dculab::kernels::gpu

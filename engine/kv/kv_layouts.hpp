// What each format of the KV cache holds of a layer. One file for each that holds more than K and V; kv_layouts.cpp
// lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/kv/retention.hpp"
#include "engine/checkpoint/kv_calibration.hpp"
#include "kernels/ops.hpp"
#include "lower/dculab_cpu/expanded_kv.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

struct ModelWeights;

struct KvCacheOptions {
  int num_blocks = 0;
  int block_size = 16;        // tokens
  Dtype dtype = Dtype::f16;   // CPU: any of kKvFormats
  int max_num_seqs = 256;     // of a step; formats that quantize tokens together
  int residual_tokens = 128;  // the same: of each of them, in F16
  int num_host_blocks = 0;    // for swapped sequences
  // CPU, latents: of K and V that they expand to at a time; more where the fewest heads of one sequence have more.
  Bytes expanded_kv = lower::dculab_cpu::kMostExpanded;
  RetentionPolicy policy = RetentionPolicy::all;  // what it keeps of each block lies in the cache, beside it
  // What is known of the model's K and V: see with_calibration().
  std::vector<kernels::Fp8KvScales> fp8_scales{};      // fp8: [num_hidden_layers]; empty: all 1
  std::shared_ptr<const KvCalibration> calibration{};  // kvquant

  [[nodiscard]] KvChoice kv() const { return {.dtype = dtype, .policy = policy}; }
};

// The options with what the weights know of their K and V; read from their folder where the format takes it.
[[nodiscard]] KvCacheOptions with_calibration(KvCacheOptions options, const ModelWeights& weights);

// Memory of a layer.
struct KvPart {
  std::size_t block_bytes = 0;  // 0: not part of the blocks
  std::size_t size = 0;
  int heads = 0;  // of a block: [heads, block_size] rows
};

// A layer with a cache of its own.
struct KvLayerSize {
  int num_kv_heads = 0, head_dim = 0;
  std::size_t num_tensors = 2;  // K and V, or latents, which are both
  [[nodiscard]] std::size_t heads(int tokens) const {
    return static_cast<std::size_t>(tokens) * static_cast<std::size_t>(num_kv_heads);
  }
};

struct KvLayout {
  // Throws InputError for a model whose sizes the kernels do not take in it. Null: they take all.
  void (*require_sizes)(const ModelShape& model, const KvCacheOptions& options) = nullptr;
  // " and ...": what it holds beside the blocks, for who reads how much that takes. Null: nothing.
  std::string (*what_beside)(const KvCacheOptions& options) = nullptr;
  // Those of K and V, or of latents, first.
  std::vector<KvPart> (*parts)(const KvLayerSize& layer, const KvCacheOptions& options);
  // Of the memory of these parts, the host's or a device's. Null: the format has none.
  kernels::KvExtras (*extras)(std::span<const std::span<std::byte>> parts, const KvCacheOptions& options,
                              int layer) = nullptr;
  // Of the heads of a view from one on. Null: as they are.
  kernels::KvExtras (*of_heads)(const kernels::KvCacheView& view, int first_kv_head) = nullptr;
  // Values in [-1, 1) everywhere.
  void (*fill_randomly)(const kernels::KvCacheView& view, std::span<const std::span<std::byte>> parts,
                        std::uint64_t seed);
};

// Throws InputError for a model that the format or policy cannot serve: by the core's table, or by the sizes of K and
// V.
void require_served(const ModelShape& model, const KvCacheOptions& options);

// Throws InputError for what no KV cache is stored in.
[[nodiscard]] const KvLayout& kv_layout(Dtype dtype);

extern const KvLayout kPlainLayout, kFp8Layout, kInt8Layout, kKiviLayout, kKvQuantLayout;

// ---- For layouts ----

// K and V (or latents) of `block_bytes` a block.
[[nodiscard]] std::vector<KvPart> block_parts(std::size_t block_bytes, const KvLayerSize& layer,
                                              const KvCacheOptions& options);

// What the options' policy keeps beside each block of a layer. Empty: nothing.
[[nodiscard]] std::vector<KvPart> parts_beside_blocks(const LayerKind& layer, const KvCacheOptions& options);

// Repeats random_kv_values over the memory.
void fill_randomly(std::span<std::byte> memory, Dtype dtype, std::uint64_t seed);

}  // namespace dculab::engine

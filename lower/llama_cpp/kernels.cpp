#include "lower/llama_cpp/kernels.hpp"

#include <algorithm>
#include <bit>

#include "lower/flash_attention/kernels.hpp"
#include "lower/gemm/kernels.hpp"

namespace dculab::lower::llama_cpp {
namespace {

constexpr int kGemvRows = 8;  // MMVQ_MAX_BATCH_SIZE
constexpr int kTileRows = 64, kTileColumns = 128;
constexpr int kPartition = 256;  // of a row of scores
constexpr int kMostHeads = 8;    // of a group in one workgroup
constexpr int kPieceTokens = 128;
constexpr TableLookUp kNoTable{.tokens = kPieceTokens, .waits = 0};  // each sequence lies in one piece
constexpr Dtype kKvDtypes[] = {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::int8};

// GGUF's, of 8 bits, of 4 and of less: multiplied as integers or widened to F16.
constexpr ProductFormat kQuantized[] = {{.weights = Dtype::int8},
                                        {.weights = Dtype::int4},
                                        {.weights = Dtype::int3},
                                        {.weights = Dtype::int2},
                                        {.weights = Dtype::int8, .activations = ActivationMode::int8},
                                        {.weights = Dtype::int4, .activations = ActivationMode::int8},
                                        {.weights = Dtype::int3, .activations = ActivationMode::int8},
                                        {.weights = Dtype::int2, .activations = ActivationMode::int8}};

[[nodiscard]] int gemv_rows(const Device& /*device*/) { return kGemvRows; }

[[nodiscard]] MatmulTile matmul_tile(const Op& /*op*/, const Device& /*device*/) { return {kTileRows, kTileColumns}; }

[[nodiscard]] ExpertTile expert_tile(const Op& /*op*/, std::int64_t tokens, const Device& /*device*/) {
  constexpr int kDepth = 256, kRegisters = 128;
  ExpertTile tile;
  tile.rows =
      static_cast<int>(std::bit_ceil(std::clamp<std::uint64_t>(static_cast<std::uint64_t>(tokens), 8, kTileRows)));
  tile.columns = kTileColumns;
  tile.depth = Bytes(kDepth);
  tile.resources.vgprs = kRegisters;
  tile.resources.lds = (tile.rows + tile.columns) * tile.depth;
  return tile;
}

[[nodiscard]] AttentionTile per_head_tile(const Op& /*op*/, const StepPlan& /*step*/, const Device& /*device*/,
                                          const ParameterChoices& /*chosen*/) {
  return {.query_tokens = 128, .query_heads = 1, .partition_tokens = kPartition, .look_up = kNoTable};
}

// The largest power of two that divides the group.
[[nodiscard]] int shared_heads(int group) {
  return std::min(kMostHeads, 1 << std::countr_zero(static_cast<unsigned>(group)));
}

[[nodiscard]] AttentionTile flash_tile(const Op& op, const StepPlan& step, const Device& device,
                                       const ParameterChoices& /*chosen*/) {
  const int heads = shared_heads(group_size(op.attention));
  if (op.kind == OpKind::attention_prefill)
    return {.query_tokens = std::max(1, 64 / heads), .query_heads = heads, .look_up = kNoTable};
  const Decodes decodes = decodes_of(step.batch);
  const std::int64_t workgroups = decodes.sequences * op.attention.num_query_heads / heads;
  return {.query_tokens = std::max(1, 64 / heads),
          .query_heads = heads,
          .partition_tokens = flash_attention::split_tokens(workgroups, 2 * device.compute_units, decodes.longest,
                                                            kPieceTokens, flash_attention::EmptySplits::avoided),
          .look_up = kNoTable};
}

}  // namespace

constexpr MatmulKernel kIntegerMatmul{.name = "llama_cpp_products",
                                      .source = "llama.cpp, ggml-cuda/mmvq.cu and mmq.cu",
                                      .gemv_rows = gemv_rows,
                                      .runs_on = runs_on_gpus,
                                      .formats = kQuantized,
                                      .tile = matmul_tile};

constexpr MatmulKernel kQuantizedMatmul{
    .name = "llama_cpp_quantized",
    .source = "llama.cpp, ggml-cuda.cu: mmvq.cu, mmq.cu or widened; the tiles of Marlin and cuBLAS stand for them",
    .gemv_rows = gemm::one_row,
    .runs_on = runs_on_gpus,
    .formats = kQuantized,
    .tile = gemm::library_tile};

constexpr ExpertKernel kExperts{.name = "llama_cpp_experts",
                                .source = "llama.cpp, ggml-cuda/mmq.cu, ggml_cuda_mul_mat_q with ids; mmq.cuh",
                                .runs_on = runs_on_gpus,
                                .formats = kQuantized,
                                .tile = expert_tile,
                                .most_vector_tokens = kGemvRows,
                                .waits = true};

constexpr AttentionKernel kPerHead{.name = "llama_cpp_per_head",
                                   .source = "llama.cpp without -fa: ggml_mul_mat of K and Q, soft_max",
                                   .limits = {.kv_dtypes = kKvDtypes},
                                   .runs_on = runs_on_gpus,
                                   .tile = per_head_tile};

constexpr AttentionKernel kFlashAttention{.name = "llama_cpp_flash_attention",
                                          .source = "llama.cpp, ggml-cuda/fattn-common.cuh",
                                          .limits = {.kv_dtypes = kKvDtypes},
                                          .runs_on = runs_on_gpus,
                                          .tile = flash_tile};

}  // namespace dculab::lower::llama_cpp

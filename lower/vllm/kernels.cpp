#include "lower/vllm/kernels.hpp"

#include <algorithm>
#include <bit>

#include "lower/vllm/paged_work.hpp"

namespace dculab::lower::vllm {
namespace {

constexpr int kPagedMostSplitHeads = 512;  // sequences x heads beyond which v1 walks contexts whole
constexpr int kTritonWarps = 4;            // num_warps
constexpr int kInstructionRows = 16;       // of a matrix instruction
constexpr double kTritonRegisters = 40;    // places, maxima, sums of rows
constexpr int kTritonPrograms = 128;       // MIN_LAUNCH_GRID_SIZE_2D: beyond, 2D fills the device

constexpr int kPartitions[] = {64, 128, 256, 512, 1024, 2048};
constexpr int kRocmPartitions[] = {256, 512};
constexpr int kTritonTiles[] = {16, 32, 64, 128};
constexpr int kSegments[] = {2, 4, 8, 16, 32, 64, 128, 256};

constexpr KernelParameter kPagedParameters[] = {
    {"partition_size", 512, kPartitions, "tokens", "_PARTITION_SIZE of vllm/attention/ops/paged_attn.py"}};
constexpr KernelParameter kRocmParameters[] = {
    {"partition_size", 256, kRocmPartitions, "tokens", "T_PAR_SIZE of csrc/rocm/attention.cu"}};
constexpr KernelParameter k3dParameters[] = {
    {"block_m", 16, kTritonTiles, "rows of queries", "BLOCK_M; more where the group is larger"},
    {"tile_size", 16, kTritonTiles, "tokens", "TILE_SIZE of 3D"},
    {"segments", 16, kSegments, "parts of a context", "NUM_PAR_SOFTMAX_SEGMENTS"}};
constexpr KernelParameter k2dParameters[] = {
    {"block_m", 16, kTritonTiles, "rows of queries", "BLOCK_M; more where the group is larger"},
    {"tile_size", 32, kTritonTiles, "tokens", "TILE_SIZE of 2D"}};

constexpr int kPagedBlocks[] = {8, 16, 32};
constexpr int kPagedHeads[] = {32, 64, 80, 96, 112, 120, 128, 192, 256};
constexpr int kRocmBlocks[] = {16, 32};
constexpr int kRocmHeads[] = {64, 128};
constexpr Dtype kKvDtypes[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2};
constexpr Dtype kRocmKvDtypes[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3};

[[nodiscard]] bool runs_on_mi200_and_newer(const Device& device) {
  return device.isa == "gfx90a" || device.isa == "gfx942" || device.isa == "gfx950";
}

[[nodiscard]] AttentionTile paged_tile(const Op& op, const StepPlan& step, const Device& device,
                                       const ParameterChoices& chosen) {
  const bool splits = decodes_of(step.batch).sequences * op.attention.num_query_heads <= kPagedMostSplitHeads;
  return {.query_heads = 1,
          .partition_tokens = splits ? chosen[kPagedParameters[0]] : 0,
          .look_up = paged_look_up(device),
          .vector_work = paged_work_per_token(op.attention, 1, device.waves.wave_size)};
}

[[nodiscard]] AttentionTile rocm_tile(const Op& op, const StepPlan& /*step*/, const Device& /*device*/,
                                      const ParameterChoices& chosen) {
  const int tokens = chosen[kRocmParameters[0]];
  return {.query_heads = group_size(op.attention), .partition_tokens = tokens, .look_up = {.tokens = tokens}};
}

// What Triton keeps of a program. In registers: the sums, the queries (each wave those of 16 rows at least), a tile of
// K and of V with an address of 64 bits for each 16 bytes, its scores. In LDS: the tile, whose values lanes exchange.
[[nodiscard]] KernelResources unified_resources(const AttentionWork& work, int rows, int tokens, const Device& device) {
  const double size = storage(work.kv_dtype, 1).value(), head = work.head_dim;
  KernelResources kernel;
  kernel.threads = kTritonWarps * device.waves.wave_size;
  const double queries = std::max(rows, kTritonWarps * kInstructionRows) * head * size / 4;
  const double tile = 2 * tokens * head * size;  // bytes
  kernel.vgprs =
      registers(kTritonRegisters + (rows * (head + tokens) + queries + tile / 4 + tile / 16 * 2) / kernel.threads);
  kernel.lds = Bytes(tile);
  return kernel;
}

// Of Triton 3.9's code for gfx90a and gfx942 with num_stages 1, heads of 64 to 512, 16 to 128 rows, tiles of 16 and 32:
// a lane sets up, clears and stores its share of the sums, then exchanges its share of a tile and of scores through
// LDS, of 16-bit K and V. Those of 64 bits and of a quarter of the rate count as 4. Median error 7 %, worst 39 %.
[[nodiscard]] IssuedWork unified_instructions(const AttentionWork& work, int rows, int tokens, const Device& device) {
  if (is_nvidia(device) || bits(work.kv_dtype) != 16) return {};
  const double lanes = kTritonWarps * device.waves.wave_size;
  const double values = static_cast<double>(tokens) * work.head_dim, scores = static_cast<double>(rows) * tokens;
  return {.once = 260 * lanes + 9.0 * rows * work.head_dim,
          .each_tile = 9 * tokens * lanes + 10 * values + 24 * std::max(lanes, scores)};
}

// find_seq_idx searches query_start_len, whose result says where the sequence begins; then how long it is; then the
// queries. All of it from the arguments.
[[nodiscard]] double unified_loads_before(std::size_t sequences) {
  return 4 + static_cast<double>(std::bit_width(sequences));
}

// `block_m` rows of (token, head of the group); one load of entries serves K and V of a tile. Where a tile's place is
// looked up, AMD's compiler asks for it only when it is needed; NVIDIA's copies it ahead of time.
[[nodiscard]] AttentionTile unified_tile(const AttentionWork& work, const StepPlan& step, int block_m, int tile_size,
                                         const Device& device) {
  const int group = group_size(work);
  const int rows = std::max(block_m, static_cast<int>(std::bit_ceil(static_cast<unsigned>(group))));
  return {.query_tokens = std::max(1, rows / group),
          .query_heads = group,
          .padded_rows = rows,
          .look_up = {.tokens = tile_size},
          .issued = unified_instructions(work, rows, tile_size, device),
          .loads_before = unified_loads_before(step.batch.sequences.size()),
          .resources = unified_resources(work, rows, tile_size, device),
          .works_in_turn = !is_nvidia(device)};
}

[[nodiscard]] AttentionTile unified_2d_tile(const Op& op, const StepPlan& step, const Device& device,
                                            const ParameterChoices& chosen) {
  const auto& [block_m, tile_size] = k2dParameters;
  return unified_tile(op.attention, step, chosen[block_m], chosen[tile_size], device);
}

[[nodiscard]] AttentionTile unified_3d_tile(const Op& op, const StepPlan& step, const Device& device,
                                            const ParameterChoices& chosen) {
  const auto& [block_m, tile_size, segments] = k3dParameters;
  const int tokens = chosen[tile_size];
  AttentionTile tile = unified_tile(op.attention, step, chosen[block_m], tokens, device);
  const Decodes decodes = decodes_of(step.batch);
  const bool is_mixed = decodes.sequences < static_cast<std::int64_t>(step.batch.sequences.size());
  if (is_mixed || decodes.sequences * op.attention.num_kv_heads > kTritonPrograms) return tile;
  tile.partition_tokens = tokens * ceil_divide(decodes.longest, chosen[segments] * tokens);
  return tile;
}

}  // namespace

constexpr AttentionKernel kPagedAttention{.name = "vllm_paged_attention",
                                          .source = "vLLM, csrc/attention/paged_attention_v2.cu",
                                          .limits = {.block_sizes = kPagedBlocks,
                                                     .head_dims = kPagedHeads,
                                                     .kv_dtypes = kKvDtypes,
                                                     .only = Phase::decode,
                                                     .most_new_tokens = 1},
                                          .runs_on = runs_on_gpus,
                                          .tile = paged_tile,
                                          .combines_at_a_time = 1,
                                          .parameters = kPagedParameters};

constexpr AttentionKernel kRocmPagedAttention{
    .name = "vllm_rocm_paged_attention",
    .source = "vLLM, csrc/rocm/attention.cu; platforms/rocm.py, use_rocm_custom_paged_attention",
    .limits = {.block_sizes = kRocmBlocks,
               .head_dims = kRocmHeads,
               .most_group = 16,
               .kv_dtypes = kRocmKvDtypes,
               .only = Phase::decode,
               .most_new_tokens = 1},
    .runs_on = runs_on_mi200_and_newer,
    .tile = rocm_tile,
    .parameters = kRocmParameters};

constexpr AttentionKernel kTritonUnified3d{
    .name = "triton_unified_attention_3d",
    .source = "vLLM 0.23, v1/attention/ops/triton_unified_attention.py",
    .limits = {.block_multiple = 16, .kv_dtypes = kKvDtypes, .only = Phase::decode, .most_new_tokens = 1},
    .runs_on = runs_on_gpus,
    .tile = unified_3d_tile,
    .parameters = k3dParameters};

constexpr AttentionKernel kTritonUnified2d{.name = "triton_unified_attention_2d",
                                           .source = "vLLM 0.23, v1/attention/ops/triton_unified_attention.py",
                                           .limits = {.block_multiple = 16, .kv_dtypes = kKvDtypes},
                                           .runs_on = runs_on_gpus,
                                           .tile = unified_2d_tile,
                                           .parameters = k2dParameters};

}  // namespace dculab::lower::vllm

#include "lower/dculab_gpu/kernels.hpp"

#include <algorithm>
#include <cmath>

#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"
#include "lower/dculab_gpu/issued_work.hpp"
#include "lower/dculab_gpu/kernel_id.hpp"
#include "lower/dculab_gpu/kivi_tiling.hpp"
#include "lower/dculab_gpu/latent_tiling.hpp"
#include "lower/dculab_gpu/matrix_cores.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"
#include "lower/kv/kv_lowering.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

// How much there is to do, where it lies, the queries: each is needed for the next.
constexpr double kLoadsBefore = 3;

[[nodiscard]] int gemv_rows(const Device& /*device*/) { return kGemvMaxRows; }

[[nodiscard]] MatmulTile matmul_tile(const Op& op, const Device& /*device*/) {
  return {op.weight_format.dtype == Dtype::int4 ? kGptqTileRows : kGemmLargeRows, kGemmColumns};
}

[[nodiscard]] int parts(const Op& op, const Device& /*device*/) {
  constexpr std::int64_t kMost = 1 << 24;  // rows from which nothing is split, whatever the product
  const int m = static_cast<int>(std::min(op.m, kMost)), n = static_cast<int>(op.n), k = static_cast<int>(op.k);
  if (op.weight_format.dtype == Dtype::int4) return plan_gptq_matmul(m, n, k).split.parts;
  if (op.weight_format.dtype == Dtype::int8) return 1;
  return plan_matmul(m, n, k).split.parts;
}

[[nodiscard]] std::optional<VectorProduct> on_vector_units(const Op& op, const Device& device) {
  if (units_of(op, device) == Units::matrix) return std::nullopt;
  if (!is_counted(device)) return VectorProduct{};
  const KernelId kernel = kernel_of(op, device.waves.wave_size, 1);
  const double tiles = std::ceil(static_cast<double>(op.m) / std::max(1, kernel.rows));
  return issued_product(op, kernel, tiles);
}

// On matrix cores BF16 weights are multiplied as they are, by each part of x.
[[nodiscard]] Multiplied multiplied(const Op& op, const Device& device) {
  if (units_of(op, device) == Units::vector || parts_of_x(op) == 1) return {.in = multiplied_in(op)};
  return {.in = Dtype::bf16, .instructions = static_cast<double>(parts_of_x(op))};
}

// Query rows of a workgroup of prefill attention: of expanded latents, as those are filled up.
[[nodiscard]] PrefillTile prefill_tile_of(const AttentionWork& work) {
  return prefill_tile(PrefillArithmetic::half_pairs, work.is_paged ? work.head_dim : kExpandedHeadDim);
}

// Decode looks a step ahead: kStepTokens of kernels/gpu/attention/paged_attention_heads.hpp; over a KIVI cache a group
// for each wave.
[[nodiscard]] TableLookUp look_up(const Op& op, int heads, const Device& device) {
  const AttentionWork& work = op.attention;
  if (work.is_latent) return {.tokens = kLatentTokens, .waits = 0};
  if (!work.is_paged) return {.tokens = prefill_tile_of(work).tokens};
  if (op.kind == OpKind::attention_prefill)
    return {.tokens = prefill_tile(PrefillArithmetic::half_pairs, work.head_dim).tokens};
  if (is_kivi(work.kv_dtype))
    return {.tokens = kPagedAttentionThreads / device.waves.wave_size * kKiviGroup, .waits = 0};
  const PagedAttentionTiling tiling = tile_paged_attention(work.kv_dtype, work.head_dim, heads);
  const int rows = paged_attention_rows(work.kv_dtype, tiling);
  return {.tokens = kPagedAttentionThreads / tiling.token_lanes * rows, .waits = 0};
}

// Pairs of a new token and a head of the group are rows, as many as the lanes of a workgroup serve, or equal tiles of
// them: start_several_tokens of kernels/gpu/launch/paged_attention.cpp.
void share_rows(const AttentionWork& work, AttentionTile& tile) {
  const int group = group_size(work), values = 128 / bits(work.kv_dtype);
  const int lanes = tile_paged_attention(work.kv_dtype, work.head_dim, group).token_lanes;
  const int most = kPagedAttentionThreads / lanes * std::max(1, kPagedAttentionLaneSums / values);
  const int tokens = static_cast<int>(std::ceil(work.query_tokens / work.num_sequences));
  const int tiles = ceil_divide(tokens * group, most);
  tile.query_heads = group;
  tile.query_tokens = ceil_divide(tokens, tiles);
}

// Lanes that share their heads have the next tokens under way while they work on these, as those of latents do.
[[nodiscard]] bool is_team(const Op& op, int heads) {
  const AttentionWork& work = op.attention;
  if (is_kivi(work.kv_dtype)) return false;
  return work.is_latent || tile_paged_attention(work.kv_dtype, work.head_dim, heads).team > 1;
}

[[nodiscard]] AttentionTile tile(const Op& op, const StepPlan& step, const Device& device,
                                 const ParameterChoices& /*chosen*/) {
  if (op.kind == OpKind::attention_scores) {
    AttentionTile scores = heavy_hitters_tile(op.attention);
    scores.query_heads = std::min(scores.query_heads, heads_scored_at_once(op.attention));  // that have room
    scores.has_matrix_instructions = false;
    return scores;
  }
  AttentionTile tile = attention_tile(op, step.attention_split);
  if (has_several_new_tokens(op) && !op.attention.is_latent) share_rows(op.attention, tile);
  if (is_kivi(op.attention.kv_dtype) && op.kind == OpKind::attention_decode)  // parts of them
    tile.query_heads = tile_kivi_attention(op.attention.kv_dtype, op.attention.head_dim, tile.query_heads).heads;
  tile.look_up = look_up(op, tile.query_heads, device);
  tile.has_matrix_instructions = units_of(op, device) == Units::matrix;
  if (!is_counted(device)) return tile;
  tile.issued = attention_instructions(op, tile.query_heads * (has_several_new_tokens(op) ? tile.query_tokens : 1));
  tile.loads_before = kLoadsBefore + tile.issued.waits;
  tile.works_in_turn = op.kind == OpKind::attention_decode && !is_team(op, tile.query_heads);
  tile.wave_by_wave = tile.works_in_turn;
  tile.is_dealt = true;
  return tile;
}

constexpr Dtype kKvDtypes[] = {Dtype::f16,      Dtype::bf16, Dtype::f32,   Dtype::fp8_e4m3,
                               Dtype::fp8_e5m2, Dtype::int8, Dtype::kivi4, Dtype::kivi2};

// kernels/gpu/launch: matmul.cpp, gptq_matmul.cpp, int8_matmul.cpp, latents.cpp.
constexpr ProductFormat kFormats[] = {
    {.weights = Dtype::f32},  {.weights = Dtype::f16},
    {.weights = Dtype::bf16}, {.weights = Dtype::fp8_e4m3},
    {.weights = Dtype::int4}, {.weights = Dtype::int8, .activations = ActivationMode::int8, .has_row_scales = true}};

}  // namespace

constexpr lower::MatmulKernel kMatmul{.name = "dculab_gpu",
                                      .source = "kernels/gpu",
                                      .gemv_rows = gemv_rows,
                                      .runs_on = runs_on_gpus,
                                      .formats = kFormats,
                                      .tile = matmul_tile,
                                      .parts = parts,
                                      .multiplied = multiplied,
                                      .on_vector_units = on_vector_units};

constexpr AttentionKernel kAttention{
    .name = "dculab_gpu",
    .source = "kernels/gpu",
    .limits = {.head_dims = kHeadDims, .kv_dtypes = kKvDtypes, .latents = Latents::takes},
    .runs_on = runs_on_gpus,
    .tile = tile};

bool calls_library(const Op& op, const Device& device) {
  const bool has_bias = op.num_operands > 3 && op.operands()[3].role == OperandRole::weight;
  return device.has_matrix_cores && op.kind == OpKind::matmul && op.groups.count == 0 && op.m > kGemvMaxRows &&
         op.weight_format.dtype == Dtype::f16 && op.activation_dtype == Dtype::f16 && !has_bias;
}

AttentionTile attention_tile(const Op& op, const AttentionSplit& split) {
  const AttentionWork& work = op.attention;
  if (work.is_latent) {  // rows are heads of a token, then of the next
    const int rows = latent_rows(work.kv_dtype);
    return {.query_tokens = std::max(1, rows / work.num_query_heads),
            .query_heads = std::min(rows, work.num_query_heads),
            .partition_tokens = split.partition_tokens};
  }
  const int rows = prefill_tile_of(work).rows;
  if (!work.is_paged) return {.query_tokens = rows};
  const int heads = split.query_heads_per_workgroup;
  return {.query_tokens = std::max(1, rows / group_size(work)),
          .query_heads = heads == 0 ? group_size(work) : std::min(heads, group_size(work)),
          .partition_tokens = split.partition_tokens};
}

}  // namespace dculab::lower::dculab_gpu

#include "lower/dculab_gpu/issued_work.hpp"

#include <algorithm>
#include <cmath>

#include "core/kv/kivi.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"
#include "lower/dculab_gpu/latent_tiling.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"
#include "lower/dculab_gpu/product_streams.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

constexpr double kTileSide = 16;  // lanes along the rows, and along the columns, of a GEMM's tile

// Instructions that make a float of a stored value.
[[nodiscard]] double widening(Dtype stored) {
  switch (stored) {
    case Dtype::f16:
    case Dtype::bf16:
      return 1;
    case Dtype::fp8_e5m2:
    case Dtype::int8:  // taken to be as many: four words' bits for two values, and a sum of both
      return 2.4;
    case Dtype::fp8_e4m3:
      return 6.4;
    default:
      return 0;
  }
}

// Share of the rate that a tile of sums in registers reaches, fitted to an H200: two or three operands of each
// multiply-add are new.
constexpr double kTileRate = 0.75;

[[nodiscard]] IssuedWork of_lanes(double once, double each_tile, int lanes) {
  return {.once = once * lanes, .each_tile = each_tile * lanes, .multiplies = true, .waves_to_fill = kWavesToFill};
}

[[nodiscard]] IssuedWork decode_instructions(const AttentionWork& work, int heads) {
  const PagedAttentionTiling tiling = tile_paged_attention(work.kv_dtype, work.head_dim, heads);
  const double values = 128.0 / bits(work.kv_dtype), rows = paged_attention_rows(work.kv_dtype, tiling);
  const double own = tiling.lane_heads, widen = widening(work.kv_dtype);
  const double member = 107 + 7.25 * rows * own + 2 * rows * values * (own + widen);
  const double step = 37.5 * rows + (tiling.team > 1 ? 44 : 0) + tiling.team * member;
  const double merges = std::ceil(static_cast<double>(tiling.team) * work.head_dim / kPagedAttentionThreads);
  IssuedWork issued = of_lanes(1050 + 250 * own + 130 * own * (merges - 1), step, kPagedAttentionThreads);
  issued.waits = 4 * (own - 1) + 1.3 * (merges - 1);
  return issued;
}

// Of pairs of halves.
[[nodiscard]] IssuedWork prefill_instructions(const Op& op, int head_dim, int value_dim, Dtype stored) {
  if (prefill_arithmetic(op.activation_dtype, stored) != PrefillArithmetic::half_pairs) return {};
  const PrefillTile tile = prefill_tile(PrefillArithmetic::half_pairs, head_dim);
  const double rows = tile.rows * kPrefillLanes / double{kPrefillThreads}, columns = value_dim / double{kPrefillLanes};
  const double keys = head_dim / 8.0 * (16 * rows + 8 * (rows + 2) + 13);
  const double values = 32 * (rows * columns + rows + columns) + 72;
  const double brought = tile.tokens * (head_dim + value_dim) / double{kPrefillThreads};
  const double unpacking = stored == Dtype::f16 ? 0 : brought * widening(stored);
  return of_lanes(1000, (keys + values + 90 * rows + 150 + unpacking) / kTileRate, kPrefillThreads);
}

[[nodiscard]] IssuedWork latent_instructions(const AttentionWork& work) {
  const double rows = latent_rows(work.kv_dtype), values = 128.0 / bits(work.kv_dtype);
  const double widen = widening(work.kv_dtype), widen_query = work.kv_dtype == Dtype::bf16 ? 0 : 1;
  const double slices = kLatentThreads / (rows / 4 * kLatentTokens / 4), chunks = work.head_dim / values;
  const double scores = std::ceil(chunks / slices) * (16 * values + 4 * values * (widen + widen_query) + 13);
  const double outputs = kLatentTokens * (2 * rows + 2 * widen + 7);
  return of_lanes(1500, (scores + outputs + 340) / kTileRate, kLatentThreads);
}

// How a product's words are multiplied.
struct Multiplying {
  double values = 1;     // of a word
  double products = 1;   // instructions of a pair of words
  double widened = 0;    // of each word of either operand
  double of_weight = 0;  // to make a word of a weight
};

[[nodiscard]] bool multiplies_bytes(const KernelId& kernel) {
  return kernel.kernel == Kernel::int8_gemv || kernel.kernel == Kernel::int8_gemm;
}

[[nodiscard]] Multiplying multiplying(const KernelId& kernel) {
  if (multiplies_bytes(kernel)) return {.values = 4, .products = 2};
  if (kernel.values == Dtype::f16 && kernel.stored == Dtype::f16) return {.values = 2, .products = 2, .widened = 2};
  return {.of_weight = widening(kernel.stored) + (kernel.stored == Dtype::fp8_e4m3 ? 4.0 : 0.0)};
}

// Of a workgroup's lane: the whole of k.
[[nodiscard]] double gemm_lane(const KernelId& kernel, double k) {
  const Multiplying how = multiplying(kernel);
  const double rows = kernel.rows / kTileSide, columns = kGemmColumns / kTileSide;
  const double word = rows * columns * how.products + (rows + columns) * (how.widened + 0.25) + 8;
  const double slabs = std::ceil(k / (kGemmSlabWords * how.values));
  const double slab = kGemmSlabWords * word + 64 + columns * how.of_weight;
  return slabs * (multiplies_bytes(kernel) ? slab : slab / kTileRate) + 200;  // bytes have the time to find operands
}

[[nodiscard]] double gemv_lane(const KernelId& kernel, double k) {
  const double rows = kernel.rows;
  if (multiplies_bytes(kernel)) return std::ceil(k / (16.0 * kernel.wave_size)) * (33 * rows + 70);
  const double values = kernel.stored == Dtype::f32 ? 4 : 8, widened_x = kernel.values == Dtype::f16 ? values : 0;
  const double scales = kernel.stored == Dtype::fp8_e4m3 ? kGemvColumns : 0;
  const double step = kGemvColumns * values * (rows + widening(kernel.stored)) + rows * (widened_x + scales + 1) + 70;
  const double slabs = std::ceil(storage(kernel.values, rows * k) / Bytes(kGemvSlabBytes));
  return std::ceil(k / (values * kernel.wave_size)) * step + 120 * slabs + 100 + 12 * rows;
}

[[nodiscard]] double gptq_gemv_lane(const KernelId& kernel, double k) {
  return std::ceil(k / kGptqRound) * (225.0 * kernel.rows + 430) + 24.0 * kernel.rows + 100;
}

[[nodiscard]] double gptq_gemm_lane(const KernelId& kernel, double k) {
  return std::ceil(k / kGptqGemmStep) * (288 * kernel.rows / kTileSide + 503) / kTileRate + 200;
}

[[nodiscard]] double absorb_k_lane(const KernelId& kernel, double k) {
  constexpr double kParts = kAbsorbThreads / (kMostLatentRank / double{kAbsorbLaneColumns});
  const double row = kAbsorbLaneColumns * (kernel.rows + widening(kernel.stored)) + 14;
  return std::ceil(k / kParts) * row + 150 * kernel.rows + 200;
}

// Whose waves load a piece of the weights each and wait for it.
[[nodiscard]] bool is_gemv(const KernelId& kernel) {
  return kernel.kernel == Kernel::gemv || kernel.kernel == Kernel::int8_gemv || kernel.kernel == Kernel::expert_gemv ||
         kernel.kernel == Kernel::absorb_v;
}

// What a workgroup loads before it goes over the weights, one after the other: where its rows are, of experts; of a
// matrix-vector product each row of x, slab by slab.
[[nodiscard]] double loads_before(const KernelId& kernel, double k) {
  const bool is_of_experts = kernel.kernel >= Kernel::expert_gemv && kernel.kernel <= Kernel::expert_gptq_gemm;
  const double of_rows = is_of_experts ? 3 : 0;
  if (kernel.rows > kGemvMaxRows) return of_rows + 1;
  const Dtype x = multiplies_bytes(kernel) ? Dtype::int8 : kernel.values;
  return of_rows + kernel.rows * std::ceil(storage(x, kernel.rows * k) / Bytes(kGemvSlabBytes));
}

// Lanes along the columns of y, and what each of them issues.
struct IssuingColumns {
  double workgroup = 0;
  double lane = 0;
};

[[nodiscard]] IssuingColumns issuing_columns(const KernelId& kernel, double k) {
  switch (kernel.kernel) {
    case Kernel::gemv:
    case Kernel::int8_gemv:
    case Kernel::expert_gemv:
    case Kernel::absorb_v:
      return {kGemvThreads / double(kernel.wave_size) * kGemvColumns, gemv_lane(kernel, k)};
    case Kernel::gemm:
    case Kernel::int8_gemm:
    case Kernel::expert_gemm:
      return {kGemmColumns, gemm_lane(kernel, k)};
    case Kernel::gptq_gemv:
    case Kernel::expert_gptq_gemv:
      return {kGptqGemvColumns, gptq_gemv_lane(kernel, k)};
    case Kernel::gptq_gemm:
    case Kernel::expert_gptq_gemm:
      return {kGptqGemmColumns, gptq_gemm_lane(kernel, k)};
    case Kernel::absorb_k:
      return {kMostLatentRank, absorb_k_lane(kernel, k)};
    default:
      return {};
  }
}

}  // namespace

IssuedWork attention_instructions(const Op& op, int heads) {
  const AttentionWork& work = op.attention;
  if (is_kivi(work.kv_dtype)) return {};
  if (work.is_latent) return latent_instructions(work);
  if (!work.is_paged) return prefill_instructions(op, kExpandedHeadDim, kExpandedValueDim, Dtype::f16);
  if (op.kind == OpKind::attention_prefill)
    return prefill_instructions(op, work.head_dim, work.head_dim, work.kv_dtype);
  return decode_instructions(work, heads);
}

VectorProduct issued_product(const Op& op, const KernelId& kernel, double tiles) {
  const double k = static_cast<double>(op.k);
  const IssuingColumns columns = issuing_columns(kernel, k);
  if (columns.workgroup <= 0) return {};
  const double workgroups = tiles * std::ceil(static_cast<double>(op.n) / columns.workgroup);
  return {.issued = workgroups * kGemmThreads * columns.lane,
          .waves_to_fill = kWavesToFill,
          .workgroups = workgroups,
          .loads_before = loads_before(kernel, k),
          .wave_by_wave = is_gemv(kernel)};
}

}  // namespace dculab::lower::dculab_gpu

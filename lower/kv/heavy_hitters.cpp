// H2O's pass over the keys.
#include "lower/attention.hpp"
#include "lower/attention_walk.hpp"
#include "lower/kv/kv_lowering.hpp"

namespace dculab::lower {
namespace {

// For each score: a sum over the lanes of a vector (four rounds of a shuffle and an addition), the scale, a store.
constexpr double kCpuDotInstructions = 10;
constexpr double kCpuDotLoads = 1;  // per value, beside its conversion: the query's, and the loop

}  // namespace

AttentionTile heavy_hitters_tile(const AttentionWork& work) { return {.query_heads = group_size(work)}; }

void score_head_by_head(Arithmetic& arithmetic, double scores, int heads, double per_score) {
  arithmetic.stored_values *= heads;
  arithmetic.shaping_per_value = kCpuDotLoads;
  arithmetic.softmax = FlopCount(scores * (per_score + kCpuDotInstructions * kCpuLanes));
}

}  // namespace dculab::lower

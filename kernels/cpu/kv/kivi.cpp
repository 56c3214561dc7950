// Quantizes groups of 32 tokens for a kivi cache. Once per 32 tokens, hence without vectors.
#include "kernels/kv/kivi.hpp"

#include <algorithm>

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/cpu/preconditions.hpp"
#include "kernels/number_format.hpp"

namespace dculab::kernels::cpu {
namespace {

// Nearest even integer of 0 <= value < 2^22.
float round_to_integer(float value) {
  constexpr float kShift = 0x1.8p23F;
  return (value + kShift) - kShift;
}

// 32 values, `stride` apart.
void store_unit(const KiviUnit& unit, int code_bits, const float* values, std::ptrdiff_t stride) {
  float least = values[0], most = values[0];
  for (int i = 1; i < kKiviGroup; ++i) {
    least = std::min(least, values[i * stride]);
    most = std::max(most, values[i * stride]);
  }
  const auto largest_code = static_cast<float>((1 << code_bits) - 1);
  *unit.zero = f16_from_f32(least);
  *unit.scale = f16_from_f32((most - least) / largest_code);
  const float scale = f32_from_f16(*unit.scale);
  const int bytes = kKiviGroup / 8 * code_bits;
  std::fill_n(unit.codes, bytes, std::uint8_t{0});
  if (scale == 0) return;
  for (int i = 0; i < kKiviGroup; ++i) {
    const float code = std::min(round_to_integer((values[i * stride] - least) / scale), largest_code);
    std::uint8_t& byte = unit.codes[i % bytes];
    byte = static_cast<std::uint8_t>(byte | static_cast<unsigned>(code) << (i / bytes * code_bits));
  }
}

// A sequence of the call, and where its tokens' K (or V) lie as floats.
struct Sequence {
  const KiviArgs& args;
  int index, computed, first_new_token;

  Sequence(const KiviArgs& all, int i)
      : args(all),
        index(i),
        computed(all.context_lens[i] - (all.query_start_loc[i + 1] - all.query_start_loc[i])),
        first_new_token(all.query_start_loc[i]) {}

  // values[32, head_dim] of the tokens from `first` on.
  void copy_group(const std::uint16_t* residual, const float* new_values, int head, int first, float* values) const {
    const KvCacheView& cache = args.cache;
    const std::ptrdiff_t row = std::ptrdiff_t{args.new_kv.residual_rows[index]} * cache.num_kv_heads + head;
    for (int token = first; token < first + kKiviGroup; ++token, values += cache.head_dim) {
      if (token < computed) {
        const int tokens = cache.residual.tokens;
        const std::uint16_t* from = residual + (row * tokens + token % tokens) * cache.head_dim;
        std::transform(from, from + cache.head_dim, values, f32_from_f16);
      } else {
        const std::ptrdiff_t token_row = first_new_token + token - computed;
        std::copy_n(new_values + token_row * args.new_kv.stride + head * cache.head_dim, cache.head_dim, values);
      }
    }
  }
};

// `values`: room for [32, head_dim].
void quantize_group(const Sequence& sequence, int head, int first, float* values) {
  const KiviArgs& args = sequence.args;
  const KvCacheView& cache = args.cache;
  const int code_bits = bits(cache.dtype), head_dim = cache.head_dim;
  const std::int32_t* table = args.block_tables + std::ptrdiff_t{sequence.index} * args.max_blocks_per_seq;
  sequence.copy_group(cache.residual.k, args.new_kv.k, head, first, values);
  for (int d = 0; d < head_dim; ++d)
    store_unit(kivi_key(cache, table, head, first, d), code_bits, values + d, head_dim);
  sequence.copy_group(cache.residual.v, args.new_kv.v, head, first, values);
  for (int i = 0; i < kKiviGroup; ++i)
    for (int part = 0; part < head_dim / kKiviGroup; ++part)
      store_unit(kivi_value(cache, table, head, first + i, part), code_bits, values + i * head_dim + part * kKiviGroup,
                 1);
}

}  // namespace

void quantize_groups(ThreadPool& threads, Workspace& workspace, const KiviArgs& args) {
  require(is_kivi(args.cache.dtype), "quantize_groups", "the KV cache is neither kivi4 nor kivi2");
  require_kv_cache(args.cache, "quantize_groups");
  const auto group_floats = static_cast<std::size_t>(kKiviGroup * args.cache.head_dim);
  float* const scratch = workspace.floats(group_floats * static_cast<std::size_t>(threads.num_threads()));
  const int heads = args.cache.num_kv_heads;
  for (int index = 0; index < args.num_seqs; ++index) {
    const Sequence sequence(args, index);
    const int first = sequence.computed / kKiviGroup, end = args.context_lens[index] / kKiviGroup;
    if (first == end) continue;
    threads.parallel_for((end - first) * heads, [&](int task, int worker) {
      quantize_group(sequence, task % heads, (first + task / heads) * kKiviGroup,
                     scratch + group_floats * static_cast<std::size_t>(worker));
    });
  }
}

}  // namespace dculab::kernels::cpu

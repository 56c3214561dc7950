// Writes a kivi cache: groups of 32 tokens, quantized once per 32 tokens and hence without vectors, and the residual.
#include "kernels/cpu/kv/kv_kernels.hpp"

#include <algorithm>

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/for_each_token.hpp"
#include "kernels/cpu/preconditions.hpp"
#include "kernels/number_format.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/kv/kivi.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include "kernels/cpu/kv/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

void keep_residual_impl(ThreadPool& threads, const KiviArgs& args) {
  const KvCacheView& cache = args.cache;
  const auto extras = cache.extras.as<KiviExtras>();
  const KvResidual& residual = extras.residual;
  const NewKv& new_kv = extras.new_kv;
  for (int seq = 0; seq < args.num_seqs; ++seq) {
    const int end = args.query_start_loc[seq + 1];
    const int tokens = std::min(end - args.query_start_loc[seq], residual.tokens);
    const std::ptrdiff_t first_row = std::ptrdiff_t{new_kv.residual_rows[seq]} * cache.num_kv_heads;
    for_each_token(threads, tokens, std::int64_t{2} * cache.num_kv_heads * cache.head_dim, [&](int token) {
      const int place = (args.context_lens[seq] - tokens + token) % residual.tokens;
      const std::ptrdiff_t from = (end - tokens + token) * new_kv.stride;
      for (int head = 0; head < cache.num_kv_heads; ++head) {
        const std::ptrdiff_t to = ((first_row + head) * residual.tokens + place) * cache.head_dim;
        const std::ptrdiff_t source = from + head * cache.head_dim;
        store_row(new_kv.k + source, cache.head_dim, reinterpret_cast<F16*>(residual.k + to));
        store_row(new_kv.v + source, cache.head_dim, reinterpret_cast<F16*>(residual.v + to));
      }
    });
  }
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(keep_residual_impl);

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
    const float code = std::min(largest_code, round_to_integer((values[i * stride] - least) / scale));
    std::uint8_t& byte = unit.codes[i % bytes];
    byte = static_cast<std::uint8_t>(byte | static_cast<unsigned>(code) << (i / bytes * code_bits));
  }
}

// A sequence of the call, and where its tokens' K (or V) lie as floats.
struct Sequence {
  const KiviArgs& args;
  KiviExtras extras;
  int index, computed, first_new_token;

  Sequence(const KiviArgs& all, int i)
      : args(all),
        extras(all.cache.extras.as<KiviExtras>()),
        index(i),
        computed(all.context_lens[i] - (all.query_start_loc[i + 1] - all.query_start_loc[i])),
        first_new_token(all.query_start_loc[i]) {}

  // values[32, head_dim] of the tokens from `first` on.
  void copy_group(const std::uint16_t* residual, const float* new_values, int head, int first, float* values) const {
    const KvCacheView& cache = args.cache;
    const std::ptrdiff_t row = std::ptrdiff_t{extras.new_kv.residual_rows[index]} * cache.num_kv_heads + head;
    for (int token = first; token < first + kKiviGroup; ++token, values += cache.head_dim) {
      if (token < computed) {
        const int tokens = extras.residual.tokens;
        const std::uint16_t* from = residual + (row * tokens + token % tokens) * cache.head_dim;
        std::transform(from, from + cache.head_dim, values, f32_from_f16);
      } else {
        const std::ptrdiff_t token_row = first_new_token + token - computed;
        std::copy_n(new_values + token_row * extras.new_kv.stride + head * cache.head_dim, cache.head_dim, values);
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
  sequence.copy_group(sequence.extras.residual.k, sequence.extras.new_kv.k, head, first, values);
  for (int d = 0; d < head_dim; ++d)
    store_unit(kivi_key(cache, table, head, first, d), code_bits, values + d, head_dim);
  sequence.copy_group(sequence.extras.residual.v, sequence.extras.new_kv.v, head, first, values);
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

void keep_residual(ThreadPool& threads, const KiviArgs& args) {
  require(is_kivi(args.cache.dtype), "keep_residual", "the KV cache is neither kivi4 nor kivi2");
  require_kv_cache(args.cache, "keep_residual");
  HWY_DYNAMIC_DISPATCH(keep_residual_impl)(threads, args);
}

}  // namespace dculab::kernels::cpu
#endif

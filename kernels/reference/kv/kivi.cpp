#include "kernels/reference/kv/kivi.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/number_format.hpp"
#include "kernels/reference/reference_kernels.hpp"

namespace dculab::kernels::reference {
namespace {

using Values = std::array<double, kKiviGroup>;

float round_to_f32(double value) { return static_cast<float>(value); }

void store_unit(const KiviUnit& unit, int code_bits, const Values& values) {
  const double largest_code = (1 << code_bits) - 1;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  *unit.zero = f16_from_f32(round_to_f32(*least));
  *unit.scale = f16_from_f32(round_to_f32(double{round_to_f32(*most - *least)} / largest_code));
  const double scale = f32_from_f16(*unit.scale);
  const int bytes = kKiviGroup / 8 * code_bits;
  std::fill_n(unit.codes, bytes, std::uint8_t{0});
  for (int i = 0; i < kKiviGroup; ++i) {
    const double distance = round_to_f32(values[static_cast<std::size_t>(i)] - *least);
    const double code = scale == 0 ? 0 : std::min<double>(largest_code, std::nearbyint(round_to_f32(distance / scale)));
    unit.codes[i % bytes] |= static_cast<std::uint8_t>(static_cast<unsigned>(code) << i / bytes * code_bits);
  }
}

double load_from_unit(const KiviUnit& unit, int code_bits, int i) {
  const int bytes = kKiviGroup / 8 * code_bits;
  const int code = unit.codes[i % bytes] >> i / bytes * code_bits & ((1 << code_bits) - 1);
  return double{f32_from_f16(*unit.scale)} * code + double{f32_from_f16(*unit.zero)};
}

// The group of 32 tokens from `first` on, one KV head.
void quantize_group(const KiviArgs& args, const KiviSequence& sequence, int kv_head, int first) {
  const KvCacheView& cache = args.cache;
  const std::int32_t* table = args.block_tables + std::ptrdiff_t{sequence.index} * args.max_blocks_per_seq;
  Values values;
  for (int d = 0; d < cache.head_dim; ++d) {
    for (int i = 0; i < kKiviGroup; ++i)
      values[static_cast<std::size_t>(i)] = load_full(cache, sequence, KvTensor::k, kv_head, first + i, d);
    store_unit(kivi_key(cache, table, kv_head, first, d), bits(cache.dtype), values);
  }
  for (int token = first; token < first + kKiviGroup; ++token)
    for (int part = 0; part < cache.head_dim / kKiviGroup; ++part) {
      for (int i = 0; i < kKiviGroup; ++i)
        values[static_cast<std::size_t>(i)] =
            load_full(cache, sequence, KvTensor::v, kv_head, token, part * kKiviGroup + i);
      store_unit(kivi_value(cache, table, kv_head, token, part), bits(cache.dtype), values);
    }
}

std::uint16_t* residual_row(const KvCacheView& cache, KvTensor tensor, int row, int kv_head, int token) {
  const KvResidual residual = cache.extras.as<KiviExtras>().residual;
  const std::ptrdiff_t head = std::ptrdiff_t{row} * cache.num_kv_heads + kv_head;
  return (tensor == KvTensor::k ? residual.k : residual.v) +
         (head * residual.tokens + token % residual.tokens) * cache.head_dim;
}

KiviSequence sequence_of(const KiviArgs& args, int index) {
  const int first = args.query_start_loc[index];
  return {index, args.context_lens[index] - (args.query_start_loc[index + 1] - first), first};
}

}  // namespace

float load_full(const KvCacheView& cache, const KiviSequence& sequence, KvTensor tensor, int kv_head, int token,
                int d) {
  const NewKv new_kv = cache.extras.as<KiviExtras>().new_kv;
  if (token < sequence.computed)
    return f32_from_f16(residual_row(cache, tensor, new_kv.residual_rows[sequence.index], kv_head, token)[d]);
  const float* values = tensor == KvTensor::k ? new_kv.k : new_kv.v;
  return values[(sequence.first_new_token + token - sequence.computed) * new_kv.stride + kv_head * cache.head_dim + d];
}

double load_quantized(const KvCacheView& cache, const std::int32_t* block_table, KvTensor tensor, int kv_head,
                      int token, int d) {
  const int code_bits = bits(cache.dtype);
  if (tensor == KvTensor::k) {
    const KiviUnit unit = kivi_key(cache, block_table, kv_head, token / kKiviGroup * kKiviGroup, d);
    return load_from_unit(unit, code_bits, token % kKiviGroup);
  }
  return load_from_unit(kivi_value(cache, block_table, kv_head, token, d / kKiviGroup), code_bits, d % kKiviGroup);
}

void quantize_groups(const KiviArgs& args) {
  for (int index = 0; index < args.num_seqs; ++index) {
    const KiviSequence sequence = sequence_of(args, index);
    const int first = sequence.computed / kKiviGroup * kKiviGroup;
    for (int group = first; group + kKiviGroup <= args.context_lens[index]; group += kKiviGroup)
      for (int head = 0; head < args.cache.num_kv_heads; ++head) quantize_group(args, sequence, head, group);
  }
}

void keep_residual(const KiviArgs& args) {
  const KvCacheView& cache = args.cache;
  const auto extras = cache.extras.as<KiviExtras>();
  for (int index = 0; index < args.num_seqs; ++index) {
    const KiviSequence sequence = sequence_of(args, index);
    const int context = args.context_lens[index];
    for (int token = std::max(sequence.computed, context - extras.residual.tokens); token < context; ++token)
      for (int head = 0; head < cache.num_kv_heads; ++head)
        for (const KvTensor tensor : {KvTensor::k, KvTensor::v}) {
          std::uint16_t* row = residual_row(cache, tensor, extras.new_kv.residual_rows[index], head, token);
          for (int d = 0; d < cache.head_dim; ++d)
            row[d] = f16_from_f32(load_full(cache, sequence, tensor, head, token, d));
        }
  }
}

}  // namespace dculab::kernels::reference

#include "kernels/reference/kv/kvquant.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/number_format.hpp"

namespace dculab::kernels::reference {
namespace {

float round_to_f32(double value) { return static_cast<float>(value); }

// How far a value lies from the middle of its range, in halves of it.
float place_in_range(float value, float centre, float half_range) {
  const float inverse = half_range > 0 ? round_to_f32(1 / double{half_range}) : 0.0F;
  return round_to_f32(double{round_to_f32(double{value} - centre)} * inverse);
}

int code_of(const float* bounds, int levels, float place) {
  int code = 0;
  for (int i = 0; i + 1 < levels; ++i) code += place > bounds[i] ? 1 : 0;
  return code;
}

// The channels with the largest distances, ascending.
std::vector<int> farthest(const std::vector<float>& distances, int count) {
  std::vector<int> channels(distances.size());
  std::iota(channels.begin(), channels.end(), 0);
  std::stable_sort(channels.begin(), channels.end(), [&](int a, int b) {
    return distances[static_cast<std::size_t>(a)] > distances[static_cast<std::size_t>(b)];
  });
  channels.resize(static_cast<std::size_t>(count));
  std::sort(channels.begin(), channels.end());
  return channels;
}

void store_code(std::uint8_t* row, int code_bits, int d, int code) {
  for (int bit = 0; bit < code_bits; ++bit) {
    const int place = d * code_bits + bit;
    const auto mask = static_cast<std::uint8_t>(1U << (place % 8));
    row[place / 8] = static_cast<std::uint8_t>((row[place / 8] & ~mask) | ((code >> bit & 1) != 0 ? mask : 0));
  }
}

int load_code(const std::uint8_t* row, int code_bits, int d) {
  int code = 0;
  for (int bit = 0; bit < code_bits; ++bit) {
    const int place = d * code_bits + bit;
    code |= (row[place / 8] >> (place % 8) & 1) << bit;
  }
  return code;
}

void store_outliers(KvQuantOutlier* to, const std::vector<int>& channels, const float* values) {
  for (const int channel : channels) *to++ = {static_cast<std::uint16_t>(channel), f16_from_f32(values[channel])};
}

void store_keys(const KvQuantLayout& layout, void* pool, std::int64_t slot, const float* k) {
  std::vector<float> distances;
  for (int channel = 0; channel < layout.extras.width; ++channel) {
    const float place = place_in_range(k[channel], layout.centres()[channel], layout.half_ranges()[channel]);
    distances.push_back(std::abs(place));
    store_code(layout.codes(pool, slot, channel / layout.head_dim), layout.code_bits, channel % layout.head_dim,
               code_of(layout.k_bounds(), layout.levels(), place));
  }
  store_outliers(layout.extras.k_outliers + slot * layout.outliers, farthest(distances, layout.outliers), k);
}

void store_values(const KvQuantLayout& layout, void* pool, std::int64_t slot, const float* v) {
  std::vector<float> distances, others;
  for (int channel = 0; channel < layout.extras.width; ++channel) distances.push_back(std::abs(v[channel]));
  const std::vector<int> outliers = farthest(distances, layout.outliers);
  for (int channel = 0; channel < layout.extras.width; ++channel)
    if (!std::binary_search(outliers.begin(), outliers.end(), channel)) others.push_back(v[channel]);
  const auto [least, most] = std::minmax_element(others.begin(), others.end());
  const KvQuantScale scale{f16_from_f32(round_to_f32(double{round_to_f32(double{*most} + *least)} / 2)),
                           f16_from_f32(round_to_f32(double{round_to_f32(double{*most} - *least)} / 2))};
  layout.extras.v_scales[slot] = scale;
  for (int channel = 0; channel < layout.extras.width; ++channel) {
    const float place = place_in_range(v[channel], f32_from_f16(scale.centre), f32_from_f16(scale.half_range));
    store_code(layout.codes(pool, slot, channel / layout.head_dim), layout.code_bits, channel % layout.head_dim,
               code_of(layout.v_bounds(), layout.levels(), place));
  }
  store_outliers(layout.extras.v_outliers + slot * layout.outliers, outliers, v);
}

// Not rotated.
double load_stored(const KvCacheView& cache, KvTensor tensor, std::int64_t slot, int kv_head, int d) {
  const KvQuantLayout layout(cache);
  const bool is_k = tensor == KvTensor::k;
  const int channel = layout.extras.first_channel + kv_head * layout.head_dim + d;
  const KvQuantOutlier* outliers =
      (is_k ? layout.extras.k_outliers : layout.extras.v_outliers) + slot * layout.outliers;
  for (int i = 0; i < layout.outliers; ++i)
    if (outliers[i].channel == channel) return f32_from_f16(outliers[i].value);
  const int code = load_code(layout.codes(is_k ? cache.k : cache.v, slot, kv_head), layout.code_bits, d);
  if (is_k) return layout.centres()[channel] + double{layout.half_ranges()[channel]} * layout.k_levels()[code];
  const KvQuantScale scale = layout.extras.v_scales[slot];
  return f32_from_f16(scale.centre) + double{f32_from_f16(scale.half_range)} * layout.v_levels()[code];
}

}  // namespace

void store_kvquant(const KvCacheView& cache, std::int64_t slot, const float* k, const float* v) {
  const KvQuantLayout layout(cache);
  store_keys(layout, cache.k, slot, k);
  store_values(layout, cache.v, slot, v);
}

double load_kvquant(const KvCacheView& cache, const std::int32_t* block_table, KvTensor tensor, int kv_head, int token,
                    int d) {
  const KvQuantLayout layout(cache);
  const std::int64_t slot = slot_of(cache, block_table, token);
  const int turned = layout.turned_values(), half = turned / 2;
  const double own = load_stored(cache, tensor, slot, kv_head, d);
  if (tensor == KvTensor::v || layout.extras.cos_sin == nullptr || d >= turned) return own;
  const bool neighbours = layout.extras.neighbours;
  const int pair = neighbours ? d / 2 : d % half;
  const bool is_first = neighbours ? d % 2 == 0 : d < half;
  const float* const cos_sin = layout.extras.cos_sin + std::ptrdiff_t{token} * turned;
  const int partner = neighbours ? d ^ 1 : is_first ? d + half : d - half;
  const double other = load_stored(cache, tensor, slot, kv_head, partner);
  const double cosine = cos_sin[pair], sine = cos_sin[half + pair];
  return is_first ? own * cosine - other * sine : own * cosine + other * sine;
}

}  // namespace dculab::kernels::reference

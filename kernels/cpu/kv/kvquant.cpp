#include "kernels/cpu/kv/kv_kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/kv/kvquant.hpp"
#include "kernels/number_format.hpp"

namespace dculab::kernels::cpu {
namespace {

constexpr int kMostOutliers = kvquant_outliers(kMostKvQuantWidth);

// The channels with the largest distances.
class Farthest {
 public:
  explicit Farthest(int count) : most_(count) {}

  // Channels come in ascending order, so that of equal distances the lower channel stays.
  void offer(float distance, int channel) {
    if (count_ == most_ && !(distance > at(count_ - 1).distance)) return;
    int place = count_ < most_ ? count_++ : count_ - 1;
    for (; place > 0 && distance > at(place - 1).distance; --place) at(place) = at(place - 1);
    at(place) = {distance, channel};
  }

  // Writes them with their values, channels ascending.
  void store(const float* values, KvQuantOutlier* to) {
    std::sort(entries_.begin(), entries_.begin() + count_,
              [](const Entry& a, const Entry& b) { return a.channel < b.channel; });
    for (int i = 0; i < count_; ++i)
      to[i] = {static_cast<std::uint16_t>(at(i).channel), f16_from_f32(values[at(i).channel])};
  }

 private:
  struct Entry {
    float distance;
    int channel;
  };
  Entry& at(int place) { return entries_[static_cast<std::size_t>(place)]; }

  std::array<Entry, kMostOutliers> entries_;
  int most_, count_ = 0;
};

// How many of the `levels` - 1 bounds are below.
[[nodiscard]] unsigned code_of(const float* bounds, int levels, float place) {
  unsigned code = 0;
  for (int step = levels / 2; step > 0; step /= 2)
    if (place > bounds[code + static_cast<unsigned>(step) - 1]) code += static_cast<unsigned>(step);
  return code;
}

// Codes of a token, channel after channel, into the rows of its heads.
class CodeWriter {
 public:
  CodeWriter(const KvQuantLayout& layout, void* pool, std::int64_t slot) : layout_(layout), pool_(pool), slot_(slot) {}

  // code(channel) of each channel.
  template <typename Code>
  void write(Code&& code) const {
    for (int head = 0; head * layout_.head_dim < layout_.extras.width; ++head) {
      std::uint8_t* to = layout_.codes(pool_, slot_, head);
      for (int d = 0; d < layout_.head_dim; d += 8) {
        std::uint32_t word = 0;
        for (int i = 0; i < 8; ++i) word |= code(head * layout_.head_dim + d + i) << (i * layout_.code_bits);
        for (int byte = 0; byte < layout_.code_bits; ++byte) *to++ = static_cast<std::uint8_t>(word >> (8 * byte));
      }
    }
  }

 private:
  const KvQuantLayout& layout_;
  void* pool_;
  std::int64_t slot_;
};

[[nodiscard]] float inverse(float half_range) { return half_range > 0 ? 1 / half_range : 0.0F; }

void store_keys(const KvQuantLayout& layout, void* pool, std::int64_t slot, const float* k) {
  const float* const centres = layout.centres();
  const float* const half_ranges = layout.half_ranges();
  Farthest outliers(layout.outliers);
  CodeWriter(layout, pool, slot).write([&](int channel) {
    const float place = (k[channel] - centres[channel]) * inverse(half_ranges[channel]);
    outliers.offer(std::abs(place), channel);
    return code_of(layout.k_bounds(), layout.levels(), place);
  });
  outliers.store(k, layout.extras.k_outliers + slot * layout.outliers);
}

void store_values(const KvQuantLayout& layout, void* pool, std::int64_t slot, const float* v) {
  Farthest farthest(layout.outliers);
  for (int channel = 0; channel < layout.extras.width; ++channel) farthest.offer(std::abs(v[channel]), channel);
  KvQuantOutlier* outlier = layout.extras.v_outliers + slot * layout.outliers;
  farthest.store(v, outlier);
  const KvQuantOutlier* const end = outlier + layout.outliers;
  float least = std::numeric_limits<float>::infinity(), most = -least;
  for (int channel = 0; channel < layout.extras.width; ++channel) {
    if (outlier != end && outlier->channel == channel) {
      ++outlier;
      continue;
    }
    least = std::min(least, v[channel]), most = std::max(most, v[channel]);
  }
  const KvQuantScale scale{f16_from_f32((most + least) / 2), f16_from_f32((most - least) / 2)};
  layout.extras.v_scales[slot] = scale;
  const float centre = f32_from_f16(scale.centre), factor = inverse(f32_from_f16(scale.half_range));
  CodeWriter(layout, pool, slot).write([&](int channel) {
    return code_of(layout.v_bounds(), layout.levels(), (v[channel] - centre) * factor);
  });
}

}  // namespace

void store_kvquant(const KvCacheView& cache, std::int64_t slot, const float* k, const float* v) {
  const KvQuantLayout layout(cache);
  store_keys(layout, cache.k, slot, k);
  store_values(layout, cache.v, slot, v);
}

}  // namespace dculab::kernels::cpu

#include "config/sweep_axis.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/fingerprint.hpp"

namespace dculab::config {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 63;

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014: any number of its stream
// without the others.
[[nodiscard]] std::uint64_t split_mix(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t bits = seed + (number + 1) * 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

// In [0, 1); axes with the same seed have streams of their own.
[[nodiscard]] double draw(const SweepAxis& axis, std::uint64_t number) {
  const std::uint64_t seed = split_mix(axis.draws->seed, fingerprint(axis.key));
  return static_cast<double>(split_mix(seed, number) >> 11U) * 0x1p-53;
}

[[nodiscard]] double number_at(const NumberRange& range, double share) {
  const double high = range.whole ? range.high + 1 : range.high;
  const double value = range.scale == Scale::log ? range.low * std::pow(high / range.low, share)
                                                 : range.low + share * (high - range.low);
  return std::clamp(range.whole ? std::floor(value) : value, range.low, range.high);
}

}  // namespace

std::string number_text(const NumberRange& range, double value) {
  constexpr int kDigits = 12;  // steps of 0.1 add up to 0.3, not 0.30000000000000004
  std::array<char, 64> buffer{};
  const auto end = range.whole ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::llround(value))
                               : std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                               std::chars_format::general, kDigits);
  const std::string text(buffer.data(), end.ptr);
  return range.unit.empty() ? text : text + " " + range.unit;
}

std::string SweepAxis::value(std::uint64_t number) const {
  if (!draws) return values[number];
  const double share = draw(*this, number);
  if (draws->range) return number_text(*draws->range, number_at(*draws->range, share));
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size()))];
}

std::uint64_t num_points(std::span<const SweepAxis> axes) {
  std::uint64_t count = 1, samples = 1;
  for (const SweepAxis& axis : axes) {
    if (axis.draws)
      samples = axis.size();
    else
      count = axis.size() > kMost / std::max<std::uint64_t>(count, 1) ? kMost : count * axis.size();
  }
  return samples > kMost / std::max<std::uint64_t>(count, 1) ? kMost : count * samples;
}

void positions_at(std::span<const SweepAxis> axes, std::uint64_t point, std::vector<std::uint64_t>& positions) {
  positions.assign(axes.size(), 0);
  const auto drawn = std::ranges::find_if(axes, [](const SweepAxis& axis) { return axis.draws.has_value(); });
  const std::uint64_t samples = drawn == axes.end() ? 1 : drawn->size();
  const std::uint64_t sample = point % samples;
  point /= samples;
  for (std::size_t index = axes.size(); index-- > 0;) {
    if (axes[index].draws) {
      positions[index] = sample;
      continue;
    }
    positions[index] = point % axes[index].size();
    point /= axes[index].size();
  }
}

std::vector<Override> choices_at(std::span<const SweepAxis> axes, std::uint64_t point) {
  std::vector<std::uint64_t> positions;
  positions_at(axes, point, positions);
  std::vector<Override> choices;
  for (std::size_t index = 0; index < axes.size(); ++index)
    choices.emplace_back(axes[index].key, axes[index].value(positions[index]));
  return choices;
}

std::vector<std::size_t> setting_order(std::span<const SweepAxis> axes) {
  std::vector<std::size_t> order(axes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [axes](std::size_t axis) { return std::ranges::count(axes[axis].key, '.'); });
  return order;
}

bool is_within(std::string_view key, std::string_view section) {
  return key.starts_with(section) && key.substr(section.size()).starts_with('.');
}

}  // namespace dculab::config

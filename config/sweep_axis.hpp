// One axis of a sweep: the values that a key takes, listed, spaced or drawn at random, and how axes make points.
//
// Points are numbered, first axis slowest. Axes that are drawn go together: their i-th draws belong to one point, and
// as a whole they are the fastest axis. A value depends on its axis and its number alone, so that any point can be made
// without the others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dculab::config {

// "kv_cache.block_size" and "32"; the value is YAML, so "[1, 2]" is a list.
using Override = std::pair<std::string, std::string>;

enum class Scale : std::uint8_t { linear, log };

// Numbers from `low` to `high`, both included.
struct NumberRange {
  double low = 0;
  double high = 0;
  Scale scale = Scale::linear;
  bool whole = false;
  std::string unit;  // "GB/s"; empty: a bare number
};

struct Draws {
  std::uint64_t samples = 0;
  std::uint64_t seed = 1;
  std::optional<NumberRange> range;  // absent: one of the axis' values, each as likely
};

struct SweepAxis {
  std::string key;                  // dotted, as for --set
  std::vector<std::string> values;  // as written or spaced; "{a: 1, b: 2}": a whole section
  std::optional<Draws> draws;

  [[nodiscard]] std::uint64_t size() const { return draws ? draws->samples : values.size(); }
  [[nodiscard]] std::string value(std::uint64_t number) const;  // Precondition: number < size()
};

// A number of a range as a scenario has it: "12", "0.5", "512 GB/s".
[[nodiscard]] std::string number_text(const NumberRange& range, double value);

// 1 without axes; at most 2^63. Precondition: drawn axes have equally many samples.
[[nodiscard]] std::uint64_t num_points(std::span<const SweepAxis> axes);

// Which value of each axis a point has. Precondition: point < num_points(axes).
void positions_at(std::span<const SweepAxis> axes, std::uint64_t point, std::vector<std::uint64_t>& positions);
[[nodiscard]] std::vector<Override> choices_at(std::span<const SweepAxis> axes, std::uint64_t point);

// In which order axes are to be set, wherever they stand in the file: a section before its keys, which it replaces.
[[nodiscard]] std::vector<std::size_t> setting_order(std::span<const SweepAxis> axes);

// Whether `key` is one of the keys of `section`: setting the section changes it.
[[nodiscard]] bool is_within(std::string_view key, std::string_view section);

}  // namespace dculab::config

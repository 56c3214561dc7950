// What a text measures that is one number: "64 KiB" in the files of machines, "0.66" in those of stacks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/unit_text.hpp"

namespace dculab::present {

// In core units.
struct Measure {
  double value = 0;
  std::optional<config::Dimension> dimension{};  // nothing: a number without a unit
};

// Nothing where the text is something else than a number and perhaps one of config::units().
[[nodiscard]] std::optional<Measure> find_measure(std::string_view text);

// "B", "s", "B/s" ...
[[nodiscard]] std::string_view core_unit(config::Dimension dimension);

// A measure with more than five digits is rounded to what people read: "84415625 kB/s" to "84.4 GB/s", "0.7215336" to
// "0.7215". Whole numbers without a unit, and what is no measure, stay as they are.
[[nodiscard]] std::string readable(const std::string& text);

}  // namespace dculab::present

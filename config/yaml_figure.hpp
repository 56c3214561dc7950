// How figures and names are written to machine and stack files, such that they are read back as they were.
#pragma once

#include <string>
#include <string_view>

#include "config/unit_text.hpp"

namespace dculab::config {

[[nodiscard]] std::string figure_text(int value);
[[nodiscard]] std::string figure_text(double value);

template <int B, int S, int F, int C>
[[nodiscard]] std::string figure_text(Quantity<B, S, F, C> value) {
  return exact_text(value);
}

// A double-quoted YAML scalar.
[[nodiscard]] std::string yaml_quoted(std::string_view text);

}  // namespace dculab::config

// Inputs that are too large to be kept in a corpus: deep nesting, long lines, very many entries.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dculab::fuzz {

struct Extreme {
  std::string_view target;
  std::string_view name;
  std::string (*make)();
};

[[nodiscard]] std::span<const Extreme> extremes();

}  // namespace dculab::fuzz

// Constants of a kernel's geometry that its program, or who tunes it, could choose otherwise: a stack may set them.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace dculab::lower {

struct KernelParameter {
  std::string_view name;         // as stack files have it
  int standard = 0;              // what the program has
  std::span<const int> allowed;  // in ascending order
  std::string_view unit;         // "tokens"
  std::string_view source;       // what it is called there
};

// What was chosen of all kernels' parameters; the others are standard. A parameter is one of a kernel's record: it has
// that address.
class ParameterChoices {
 public:
  [[nodiscard]] int operator[](const KernelParameter& parameter) const {
    for (const auto& [chosen, value] : chosen_)
      if (chosen == &parameter) return value;
    return parameter.standard;
  }
  void set(const KernelParameter& parameter, int value) {
    for (auto& [chosen, old] : chosen_)
      if (chosen == &parameter) {
        old = value;
        return;
      }
    chosen_.emplace_back(&parameter, value);
  }

 private:
  std::vector<std::pair<const KernelParameter*, int>> chosen_;
};

}  // namespace dculab::lower

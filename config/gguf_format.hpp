// Weight formats of GGUF, by the names that llama.cpp gives them: "Q4_K_M".
#pragma once

#include <string>
#include <string_view>

#include "core/dtype.hpp"

namespace dculab::config {

struct GgufFormat {
  std::string_view name;  // in small letters
  WeightFormat format;    // of the layers: what is computed with
  double bits = 0;        // that a weight of the layers takes
  std::string_view note;  // what it is priced as
};

// Embedding and output head: Q6_K (6.6 bits) or Q8_0, priced as this.
inline constexpr Dtype kGgufHead = Dtype::int8;

// In any case of letters; null where GGUF has none of that name.
[[nodiscard]] const GgufFormat* find_gguf_format(const std::string& name);

}  // namespace dculab::config

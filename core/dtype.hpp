// The number formats that weights, activations and KV caches are stored in.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/units.hpp"

namespace dculab {

enum class Dtype : std::uint8_t { f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, int4 };

[[nodiscard]] constexpr int bits(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return 32;
    case Dtype::f16:
    case Dtype::bf16:
      return 16;
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
    case Dtype::int8:
      return 8;
    case Dtype::int4:
      return 4;
  }
  return 0;
}

// Bytes of `count` values of this format, without scales or padding.
[[nodiscard]] constexpr Bytes storage(Dtype dtype, double count) { return Bytes(count * bits(dtype) / 8.0); }

// Short name as users type it: "f32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4".
[[nodiscard]] std::string_view name(Dtype dtype);

// Reads the short name, and the spellings of Hugging Face and vLLM ("float16", "torch.bfloat16", "fp8").
[[nodiscard]] std::optional<Dtype> parse_dtype(std::string_view text);

// How a weight matrix is stored: plain values, or integers with one scale (and zero point) per group.
struct WeightFormat {
  Dtype dtype = Dtype::f16;
  int group_size = 0;  // input features that share a scale; 0 = none

  friend bool operator==(const WeightFormat&, const WeightFormat&) = default;
};

// Bytes of a weight matrix of `count` values, with its F16 scales and its zero points of `dtype`.
[[nodiscard]] Bytes weight_storage(WeightFormat format, double count);

}  // namespace dculab

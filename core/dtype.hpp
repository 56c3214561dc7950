// The number formats that weights, activations and KV caches are stored in.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/units.hpp"

namespace dculab {

// kivi4 and kivi2 are a KV cache's only: 4 and 2 bits with a scale and a zero point for every 32 values, keys per
// channel, values per token (Liu et al., arXiv:2402.02750).
enum class Dtype : std::uint8_t { f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, int4, int3, int2, kivi4, kivi2 };

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
    case Dtype::kivi4:
      return 4;
    case Dtype::int3:
      return 3;
    case Dtype::int2:
    case Dtype::kivi2:
      return 2;
  }
  return 0;
}

// Bytes of `count` values of this format, without scales or padding.
[[nodiscard]] constexpr Bytes storage(Dtype dtype, double count) { return Bytes(count * bits(dtype) / 8.0); }

// Short name as users type it: "f32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4", "kivi4", ...
[[nodiscard]] std::string_view name(Dtype dtype);

// Reads the short name, and the spellings of Hugging Face and vLLM ("float16", "torch.bfloat16", "fp8").
[[nodiscard]] std::optional<Dtype> parse_dtype(std::string_view text);

// How a weight matrix is stored: plain values, or integers with one scale (and zero point) per group.
struct WeightFormat {
  Dtype dtype = Dtype::f16;
  int group_size = 0;  // input features that share a scale; 0 = no scales, -1 = one for each row

  friend bool operator==(const WeightFormat&, const WeightFormat&) = default;
};

// Bytes of a weight matrix of `count` values, with its F16 scales and its zero points of `dtype`.
[[nodiscard]] Bytes weight_storage(WeightFormat format, double count);

// Bytes of the cached K (or V) of `count` values in heads of `head_dim`, scales included: int8 has an F32 scale for
// each token and head, kivi4 and kivi2 an F16 scale and an F16 zero point for every 32 values.
[[nodiscard]] Bytes kv_storage(Dtype dtype, double count, int head_dim);

// How a matmul takes its activations: as they are (weights are widened, sums are F32); with quantized weights rounded
// to 8 bits with one scale per token and group of in-features, so that the products are integers; or with BF16 weights
// rounded to BF16, whose products, exact in F32, the CPU may sum two at a time.
enum class ActivationMode : std::uint8_t { exact, int8, bf16 };

}  // namespace dculab

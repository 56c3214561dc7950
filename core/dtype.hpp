// The number formats that weights, activations and KV caches are stored in.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/units.hpp"

namespace dculab {

// kivi4 and kivi2 are a KV cache's only: 4 and 2 bits with a scale and a zero point for every 32 values, keys per
// channel, values per token (Liu et al., arXiv:2402.02750). So are kvquant4, kvquant3 and kvquant2: levels and ranges
// of keys from calibration, and a share of the values in F16 (Hooper et al., arXiv:2401.18079). mxfp4, nf4 and fp4 are
// weights' only, of 4 bits: mxfp4 is E2M1 of the OCP Microscaling Formats Specification 1.0, nf4 and fp4 are those of
// bitsandbytes (Dettmers et al., arXiv:2305.14314).
enum class Dtype : std::uint8_t {
  f32,
  f16,
  bf16,
  fp8_e4m3,
  fp8_e5m2,
  int8,
  int4,
  int3,
  int2,
  kivi4,
  kivi2,
  kvquant4,
  kvquant3,
  kvquant2,
  mxfp4,
  nf4,
  fp4,
};

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
    case Dtype::kvquant4:
    case Dtype::mxfp4:
    case Dtype::nf4:
    case Dtype::fp4:
      return 4;
    case Dtype::int3:
    case Dtype::kvquant3:
      return 3;
    case Dtype::int2:
    case Dtype::kivi2:
    case Dtype::kvquant2:
      return 2;
  }
  return 0;
}

// Bytes of `count` values of this format, without scales or padding.
[[nodiscard]] constexpr Bytes storage(Dtype dtype, double count) { return Bytes(count * bits(dtype) / 8.0); }

[[nodiscard]] constexpr bool is_integer(Dtype dtype) {
  return dtype == Dtype::int8 || dtype == Dtype::int4 || dtype == Dtype::int3 || dtype == Dtype::int2;
}

// Short name as users type it: "f32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4", "kivi4", "mxfp4", ...
[[nodiscard]] std::string_view name(Dtype dtype);

// Reads the short name, and the spellings of Hugging Face and vLLM ("float16", "torch.bfloat16", "fp8").
[[nodiscard]] std::optional<Dtype> parse_dtype(std::string_view text);

// What each group of weights has besides its values.
enum class ScaleFormat : std::uint8_t {
  f16_and_zero_point,  // a zero point of the weights' own dtype: GPTQ, AWQ
  f32,                 // bitsandbytes
  f32_of_bytes,        // bitsandbytes' double quantization: a byte, and an F32 for 256 of them
  e8m0,                // a byte, the exponent of a power of two: MXFP4
};

// How a weight matrix is stored: plain values, or numbers of few bits with one scale per group.
struct WeightFormat {
  Dtype dtype = Dtype::f16;
  int group_size = 0;  // input features that share a scale; 0 = no scales worth counting, -1 = one for each row
  ScaleFormat scales = ScaleFormat::f16_and_zero_point;

  friend bool operator==(const WeightFormat&, const WeightFormat&) = default;
};

// Of mxfp4, and of nf4 and fp4 as bitsandbytes groups them by default.
inline constexpr int kMxfp4Group = 32;
inline constexpr int kBitsAndBytesGroup = 64;

// Bytes of a weight matrix of `count` values, with its scales and zero points.
[[nodiscard]] Bytes weight_storage(WeightFormat format, double count);

// Bytes of the cached K and V of `count` values in all, in heads of `head_dim`, of which a token of a layer has
// `kv_heads`, scales included: int8 has an F32 scale for each token and head, kivi4 and kivi2 an F16 scale and an F16
// zero point for every 32 values, kvquant4, kvquant3 and kvquant2 what core/kv/kvquant.hpp says, half of it for K.
[[nodiscard]] Bytes kv_storage(Dtype dtype, double count, int head_dim, int kv_heads = 1);

// How a matmul takes its activations: as they are (weights are widened, sums are F32); with quantized weights rounded
// to 8 bits with one scale per token and group of in-features, so that the products are integers; or with BF16 weights
// rounded to BF16, whose products, exact in F32, the CPU may sum two at a time; or with FP8 weights rounded to FP8, as
// GPUs with such instructions multiply (no kernel of ours does).
enum class ActivationMode : std::uint8_t { exact, int8, bf16, fp8 };

}  // namespace dculab

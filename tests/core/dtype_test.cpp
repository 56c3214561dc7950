#include "core/dtype.hpp"

#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

constexpr Dtype kAll[] = {Dtype::f32,  Dtype::f16,  Dtype::bf16,  Dtype::fp8_e4m3, Dtype::fp8_e5m2,
                          Dtype::int8, Dtype::int4, Dtype::mxfp4, Dtype::nf4,      Dtype::fp4};

}  // namespace

TEST_CASE("every format's name reads back as itself", "[dtype]") {
  for (const Dtype dtype : kAll) {
    INFO(name(dtype));
    REQUIRE(parse_dtype(name(dtype)) == dtype);
  }
}

TEST_CASE("the spellings of Hugging Face, vLLM and safetensors are read", "[dtype]") {
  REQUIRE(parse_dtype("torch.bfloat16") == Dtype::bf16);
  REQUIRE(parse_dtype("torch.float32") == Dtype::f32);
  REQUIRE(parse_dtype("float16") == Dtype::f16);
  REQUIRE(parse_dtype("half") == Dtype::f16);
  REQUIRE(parse_dtype("fp8") == Dtype::fp8_e4m3);
  REQUIRE(parse_dtype("BF16") == Dtype::bf16);
  REQUIRE(parse_dtype("Fp16") == Dtype::f16);
  REQUIRE(parse_dtype("FP8_E4M3") == Dtype::fp8_e4m3);
}

TEST_CASE("what is not a format is refused", "[dtype]") {
  for (const char* text : {"", "torch.", "f64", "f 16", "float16 ", "torch.torch.float16", "?"}) {
    INFO(text);
    REQUIRE_FALSE(parse_dtype(text).has_value());
  }
}

TEST_CASE("storage of ten values", "[dtype]") {
  const double expected[] = {40, 20, 20, 10, 10, 10, 5, 5, 5, 5};
  for (std::size_t index = 0; index < std::size(kAll); ++index) {
    INFO(name(kAll[index]));
    REQUIRE(storage(kAll[index], 10).value() == expected[index]);
  }
}

TEST_CASE("a GPTQ matrix pays for one F16 scale and one int4 zero point per group", "[dtype]") {
  const WeightFormat gptq{.dtype = Dtype::int4, .group_size = 128};
  // 4096 x 4096 values at 4 bit, 131072 groups of 2 + 0.5 bytes.
  REQUIRE(weight_storage(gptq, 4096.0 * 4096.0).value() == 8388608.0 + 131072.0 * 2.5);
  REQUIRE(weight_storage({.dtype = Dtype::f16}, 4096.0).value() == 8192.0);
}

TEST_CASE("matrices of 4-bit floats pay for the scales of their blocks", "[dtype]") {
  constexpr double kCount = 2880.0 * 5760.0;
  // A byte for 32 values: 4.25 bits a weight.
  CHECK(weight_storage({Dtype::mxfp4, kMxfp4Group, ScaleFormat::e8m0}, kCount).value() == kCount * 4.25 / 8);
  // An F32 for 64: 4.5 bits.
  const WeightFormat nf4{Dtype::nf4, kBitsAndBytesGroup, ScaleFormat::f32};
  CHECK(weight_storage(nf4, kCount).value() == kCount * 4.5 / 8);
  // Double quantization: a byte for 64, and an F32 for 256 of those: 0.127 bits (QLoRA, section 3).
  const WeightFormat twice{Dtype::nf4, kBitsAndBytesGroup, ScaleFormat::f32_of_bytes};
  CHECK_THAT(weight_storage(twice, kCount).value(), WithinRel(kCount * (4 + 8.0 / 64 + 32.0 / (64 * 256)) / 8, 1e-12));
  // LLM.int8: an F32 for each row of 4096.
  CHECK(weight_storage({Dtype::int8, 4096, ScaleFormat::f32}, 4096.0 * 100).value() == 4096.0 * 100 + 4 * 100);
}

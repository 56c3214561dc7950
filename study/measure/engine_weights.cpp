#include "study/measure/engine_weights.hpp"

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "model/folder/model_config.hpp"

namespace dculab::study {
namespace {

constexpr std::uint64_t kSeed = 1;

void leave_unquantized(ModelShape& shape) {
  shape.quantization.reset();
  shape.quantized_lm_head = false;
  shape.plain = {};
}

}  // namespace

bool has_weights(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / "model.safetensors") ||
         std::filesystem::exists(folder / "model.safetensors.index.json");
}

engine::ModelWeights load_or_make_weights(const std::filesystem::path& folder, const std::string& random_dtype) {
  if (random_dtype.empty()) return engine::load_weights(folder);
  const auto dtype = parse_dtype(random_dtype);
  if (!dtype)
    throw InputError("--random-weights: '" + random_dtype + "' is not a dtype; use f32, f16, bf16, fp8, int8 or int4");
  ModelShape shape = read_model_shape(folder);
  leave_unquantized(shape);
  if (*dtype == Dtype::fp8_e4m3) {
    shape.quantization = WeightFormat{*dtype, 0};  // embedding and head are not FP8 in any checkpoint
    shape.dtype = Dtype::bf16;
  } else if (*dtype == Dtype::int4 || *dtype == Dtype::int8) {
    constexpr int kGroupSize = 128;  // of int4, as most GPTQ and AWQ checkpoints have it; int8: a scale a row
    shape.quantization = WeightFormat{*dtype, *dtype == Dtype::int4 ? kGroupSize : -1};
    shape.quantized_lm_head = !shape.tie_word_embeddings;
    shape.dtype = Dtype::f16;
  } else {
    shape.dtype = *dtype;
  }
  return engine::random_weights(shape, kSeed);
}

engine::ModelWeights load_or_make_weights(const std::filesystem::path& folder, WeightFormat format) {
  ModelShape shape = read_model_shape(folder);
  if (has_weights(folder) && shape.layer_format() == format) return engine::load_weights(folder);
  leave_unquantized(shape);
  const bool is_fp8 = format.dtype == Dtype::fp8_e4m3, is_quantized = is_fp8 || is_integer(format.dtype);
  if (is_quantized) shape.quantization = format;
  shape.dtype = is_fp8 ? Dtype::bf16 : is_quantized ? Dtype::f16 : format.dtype;
  return engine::random_weights(shape, kSeed);
}

}  // namespace dculab::study

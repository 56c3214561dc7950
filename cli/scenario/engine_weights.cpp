#include "cli/scenario/engine_weights.hpp"

#include "core/error.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"

namespace dculab::cli {
namespace {

constexpr std::uint64_t kSeed = 1;

}  // namespace

engine::ModelWeights load_or_make_weights(const std::filesystem::path& folder, const std::string& random_dtype) {
  if (random_dtype.empty()) return engine::load_weights(folder);
  const auto dtype = parse_dtype(random_dtype);
  if (!dtype)
    throw InputError("--random-weights: '" + random_dtype + "' is not a dtype; use f32, f16, bf16, int8 or int4");
  ModelShape shape = engine::read_model_shape(folder);
  shape.quantization.reset();
  shape.quantized_lm_head = false;
  if (*dtype == Dtype::int4 || *dtype == Dtype::int8) {
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
  ModelShape shape = engine::read_model_shape(folder);
  const bool is_stored = std::filesystem::exists(folder / "model.safetensors") ||
                         std::filesystem::exists(folder / "model.safetensors.index.json");
  if (is_stored && shape.layer_format() == format) return engine::load_weights(folder);
  shape.quantization.reset();
  shape.quantized_lm_head = false;
  const bool is_quantized = format.dtype == Dtype::int4 || format.dtype == Dtype::int8;
  if (is_quantized) shape.quantization = format;
  shape.dtype = is_quantized ? Dtype::f16 : format.dtype;
  return engine::random_weights(shape, kSeed);
}

}  // namespace dculab::cli

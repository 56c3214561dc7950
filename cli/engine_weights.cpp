#include "cli/engine_weights.hpp"

#include "core/error.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"

namespace dculab::cli {

engine::LlamaWeights load_or_make_weights(const std::filesystem::path& folder, const std::string& random_dtype) {
  constexpr std::uint64_t kSeed = 1;
  if (random_dtype.empty()) return engine::load_weights(folder);
  const auto dtype = parse_dtype(random_dtype);
  if (!dtype) throw InputError("--random-weights: '" + random_dtype + "' is not a dtype; use f32, f16 or bf16");
  ModelShape shape = engine::read_model_shape(folder);
  shape.dtype = *dtype;
  return engine::random_weights(shape, kSeed);
}

}  // namespace dculab::cli

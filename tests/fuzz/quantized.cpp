// A model of GPTQ or AWQ: config.json up to the first NUL, model.safetensors behind it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/packed_layers.hpp"
#include "engine/checkpoint/quantized_tensors.hpp"
#include "model/folder/model_config.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

using engine::Checkpoint;

using engine::TensorSlot;
using kernels::QuantizedMatrix;

template <typename T>
bool is_stored(const Checkpoint& checkpoint, const std::string& name, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return std::ranges::equal(checkpoint.find(name).tensor->bytes, bytes);
}

void check_matrix(const Checkpoint& checkpoint, const std::string& module, const QuantizedMatrix& matrix,
                  const QuantizationConfig& config) {
  const int limit = 1 << config.bits;
  const auto fits = [limit](int value) { return value < limit; };
  require(std::ranges::all_of(matrix.q, fits) && std::ranges::all_of(matrix.zeros, fits), "integers have their bits");
  const auto is_finite = [](float scale) { return std::isfinite(scale); };
  require(std::ranges::all_of(matrix.scales, is_finite), "scales are finite");
  if (config.format == QuantizedFormat::awq || matrix.columns % engine::packing_multiple(config.bits) != 0) return;
  const engine::GptqTensors tensors = engine::to_gptq_tensors(matrix, QuantizedFormat::gptq_v2);
  require(is_stored(checkpoint, module + ".qweight", tensors.qweight), "integers are written as they were");
  if (config.format == QuantizedFormat::gptq_v2)
    require(is_stored(checkpoint, module + ".qzeros", tensors.qzeros), "zero points are written as they were");
}

}  // namespace

void read_quantized_model(std::string_view input) {
  static const ScratchFolder folder;
  const std::size_t end = std::min(input.find('\0'), input.size());
  folder.write("config.json", input.substr(0, end));
  folder.write("model.safetensors", input.substr(std::min(end + 1, input.size())));
  engine::ModelWeights weights = engine::load_weights(folder.path(), engine::WeightMemory::mapped);
  const auto config = read_quantization_config(std::filesystem::path(folder.path()));
  const Checkpoint checkpoint(folder.path());
  for (const TensorSlot& slot : engine::tensor_slots(weights)) {
    require(slot.view->data != nullptr, "a weight that is needed is there");
    if (!config || !engine::is_quantized_matrix(slot, config->lm_head)) continue;
    const engine::ModuleShape module{engine::module_name(slot), slot.tensor_rows(), slot.columns};
    check_matrix(checkpoint, module.name, engine::read_quantized_matrix(checkpoint, module, *config), *config);
  }
}

}  // namespace dculab::fuzz

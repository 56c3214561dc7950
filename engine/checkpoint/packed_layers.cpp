#include "engine/checkpoint/packed_layers.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/quantized_tensors.hpp"
#include "engine/memory/anonymous_memory.hpp"
#include "kernels/cpu/packed_weights.hpp"

namespace dculab::engine {
namespace {

using Permutation = std::vector<std::int32_t>;

[[nodiscard]] int group_size_of(const QuantizationConfig& config, const TensorSlot& slot) {
  return config.group_size == -1 ? slot.columns : config.group_size;
}

[[nodiscard]] std::size_t room_for(const QuantizationConfig& config, const TensorSlot& slot) {
  return rounded_to_line(kernels::cpu::packed_bytes(slot.rows, slot.columns, config.bits, group_size_of(config, slot)));
}

// What pack_weights() serves.
void require_runnable(const Checkpoint& checkpoint, const QuantizationConfig& config, const TensorSlot& slot) {
  constexpr int kMultiple = 8;
  const int group_size = group_size_of(config, slot);
  if (slot.columns % kMultiple == 0 && group_size % kMultiple == 0) return;
  const std::string tensor = module_name(slot) + ".qweight";
  throw InputError(checkpoint.find(tensor).file,
                   "tensor '" + tensor + "' has " + std::to_string(slot.columns) + " in-features in groups of " +
                       std::to_string(group_size) + "; the CPU kernels need multiples of " + std::to_string(kMultiple));
}

// Keeps one copy of each permutation, so that matrices in the same order share a pointer.
class Permutations {
 public:
  [[nodiscard]] const std::int32_t* keep(Permutation permutation) {
    if (permutation.empty()) return nullptr;
    for (const auto& known : *kept_)
      if (*known == permutation) return known->data();
    kept_->push_back(std::make_unique<const Permutation>(std::move(permutation)));
    return kept_->back()->data();
  }
  [[nodiscard]] std::shared_ptr<const void> memory() const { return kept_; }

 private:
  std::shared_ptr<std::vector<std::unique_ptr<const Permutation>>> kept_ =
      std::make_shared<std::vector<std::unique_ptr<const Permutation>>>();
};

[[nodiscard]] ModuleShape module_of(const TensorSlot& slot) {
  return {module_name(slot), slot.tensor_rows(), slot.columns};
}

// The rows of a tensor that the slot shows. What belongs to in-features is that of the tensor.
[[nodiscard]] kernels::QuantizedMatrix picked_rows(const kernels::QuantizedMatrix& tensor, const TensorSlot& slot) {
  kernels::QuantizedMatrix matrix = tensor;
  matrix.rows = slot.rows;
  const auto pick = [&slot](const auto& from, auto& to, int width) {
    to.resize(static_cast<std::size_t>(slot.rows) * static_cast<std::size_t>(width));
    for (std::ptrdiff_t row = 0; row < slot.rows; ++row)
      std::copy_n(from.begin() + std::ptrdiff_t{slot.tensor_row(static_cast<int>(row))} * width, width,
                  to.begin() + row * width);
  };
  pick(tensor.q, matrix.q, tensor.columns);
  pick(tensor.scales, matrix.scales, tensor.groups());
  pick(tensor.zeros, matrix.zeros, tensor.groups());
  return matrix;
}

// What runs: the CPU kernels hold 2 and 3 bits as 4.
[[nodiscard]] WeightFormat packed_format(const QuantizationConfig& config) {
  return {config.bits == 8 ? Dtype::int8 : Dtype::int4, config.group_size};
}

}  // namespace

bool is_quantized_matrix(const TensorSlot& slot, bool lm_head) {
  return slot.columns > 0 && !slot.is_plain && slot.slot != WeightSlot::embed_tokens &&
         (lm_head || slot.slot != WeightSlot::lm_head);
}

bool is_quantized_in(const ModelShape& shape, const TensorSlot& slot) {
  if (!shape.quantization || !is_quantized_matrix(slot, shape.quantized_lm_head)) return false;
  if (!is_of_layer(slot.slot)) return true;
  return shape.slot_format(slot.slot, shape.layer(slot.layer), *shape.quantization) == *shape.quantization;
}

std::string module_name(const TensorSlot& slot) { return slot.name.substr(0, slot.name.rfind('.')); }

void load_packed_layers(const Checkpoint& checkpoint, const QuantizationConfig& config,
                        const std::vector<TensorSlot>& slots, ModelWeights& weights) {
  std::size_t total = 0;
  for (const TensorSlot& slot : slots) {
    require_packable(checkpoint, module_of(slot), config);
    require_runnable(checkpoint, config, slot);
    total += room_for(config, slot);
  }
  require_memory("the model's quantized weights", Bytes(static_cast<double>(total)), "use a smaller model");
  auto memory = std::make_shared<const AnonymousMemory>(total);
  Permutations permutations;
  std::byte* next = memory->data();
  kernels::QuantizedMatrix tensor;
  std::string read_name;
  for (const TensorSlot& slot : slots) {
    if (std::exchange(read_name, slot.name) != slot.name)  // Q, K and V may be parts of one tensor
      tensor = read_quantized_matrix(checkpoint, module_of(slot), config);
    const kernels::QuantizedMatrix matrix = slot.is_part() ? picked_rows(tensor, slot) : tensor;
    *slot.view = kernels::cpu::pack_weights(matrix, permutations.keep(kernels::cpu::group_order(matrix)), next);
    next += room_for(config, slot);
  }
  weights.memory.push_back(std::move(memory));
  weights.memory.push_back(permutations.memory());
  weights.shape.quantization = packed_format(config);
}

}  // namespace dculab::engine

#include "engine/checkpoint/model_loader.hpp"

#include <cstring>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "engine/checkpoint/safetensors.hpp"
#include "engine/memory/anonymous_memory.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kCacheLineBytes = 64;

std::size_t rounded_to_line(std::size_t bytes) {
  return (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

// Quantized exports keep integers under other names; say so rather than only "missing".
std::string hint_for_missing(const Checkpoint& checkpoint, const std::string& name) {
  const std::string quantized = name.substr(0, name.rfind('.')) + ".qweight";
  if (checkpoint.find(quantized).tensor != nullptr)
    return "; the checkpoint is quantized, which is not supported: use the F16 or BF16 one";
  return "; config.json asks for it";
}

kernels::WeightView checked_view(const Checkpoint& checkpoint, const WeightSlot& slot) {
  const auto [tensor, file] = checkpoint.find(slot.name);
  if (tensor == nullptr)
    throw InputError(file, "tensor '" + slot.name + "' is missing" + hint_for_missing(checkpoint, slot.name));
  std::vector<std::int64_t> expected{slot.rows};
  if (slot.columns > 0) expected.push_back(slot.columns);
  if (tensor->shape != expected)
    throw InputError(file, "tensor '" + slot.name + "' has shape " + to_string(tensor->shape) +
                               ", but config.json makes it " + to_string(expected));
  const auto dtype = parse_dtype(tensor->dtype);
  if (!dtype || (*dtype != Dtype::f32 && *dtype != Dtype::f16 && *dtype != Dtype::bf16))
    throw InputError(
        file, "tensor '" + slot.name + "' has dtype " + tensor->dtype + ", which is not supported (F32, F16, BF16)");
  return {tensor->bytes.data(), *dtype, slot.rows};
}

// A plan knows one dtype for the matrices. Norms may differ: some exports keep them in F32.
void require_one_dtype(const Checkpoint& checkpoint, const std::vector<WeightSlot>& slots, Dtype dtype) {
  for (const WeightSlot& slot : slots)
    if (slot.columns > 0 && slot.view->dtype != dtype)
      throw InputError(checkpoint.find(slot.name).file,
                       "tensor '" + slot.name + "' is " + std::string(name(slot.view->dtype)) +
                           ", but other matrices are " + std::string(name(dtype)) + "; mixed dtypes are not supported");
}

std::size_t bytes_of(const WeightSlot& slot) {
  return slot.values() * static_cast<std::size_t>(bits(slot.view->dtype)) / 8;
}

// Kernels read whole values; the format promises no alignment.
void require_alignment(const WeightSlot& slot, const std::string& file) {
  const auto value_bytes = static_cast<std::uintptr_t>(bits(slot.view->dtype)) / 8;
  if (reinterpret_cast<std::uintptr_t>(slot.view->data) % value_bytes != 0)
    throw InputError(file, "tensor '" + slot.name +
                               "' is not aligned to its values and cannot be used in place; "
                               "load the weights into huge pages");
}

std::shared_ptr<const AnonymousMemory> copy_to_huge_pages(const std::vector<WeightSlot>& slots) {
  std::size_t total = 0;
  for (const WeightSlot& slot : slots) total += rounded_to_line(bytes_of(slot));
  require_memory("the model's weights", Bytes(static_cast<double>(total)),
                 "use a smaller model, or one in F16 instead of F32");
  auto memory = std::make_shared<const AnonymousMemory>(total);
  std::byte* next = memory->data();
  for (const WeightSlot& slot : slots) {
    std::memcpy(next, slot.view->data, bytes_of(slot));
    slot.view->data = next;
    next += rounded_to_line(bytes_of(slot));
  }
  return memory;
}

}  // namespace

LlamaWeights load_weights(const std::filesystem::path& folder, WeightMemory memory) {
  LlamaWeights weights;
  weights.shape = read_model_shape(folder);
  auto checkpoint = std::make_shared<const Checkpoint>(folder);
  const std::vector<WeightSlot> slots = weight_slots(weights);
  for (const WeightSlot& slot : slots) *slot.view = checked_view(*checkpoint, slot);
  weights.shape.dtype = weights.embed_tokens.dtype;  // what is stored, whatever config.json says
  require_one_dtype(*checkpoint, slots, weights.shape.dtype);
  if (memory == WeightMemory::huge_pages) {
    weights.memory.push_back(copy_to_huge_pages(slots));
  } else {
    for (const WeightSlot& slot : slots) require_alignment(slot, checkpoint->find(slot.name).file);
    weights.memory.push_back(checkpoint);
  }
  tie_head(weights);
  return weights;
}

}  // namespace dculab::engine

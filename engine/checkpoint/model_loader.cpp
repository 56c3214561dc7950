#include "engine/checkpoint/model_loader.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/finite_weights.hpp"
#include "engine/checkpoint/fp8_layers.hpp"
#include "engine/checkpoint/fused_experts.hpp"
#include "engine/checkpoint/kv_calibration_file.hpp"
#include "engine/checkpoint/kv_scales.hpp"
#include "engine/checkpoint/mtp_checkpoint.hpp"
#include "engine/checkpoint/packed_layers.hpp"
#include "engine/checkpoint/safetensors.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/memory/anonymous_memory.hpp"
#include "fields/json_fields.hpp"
#include "fields/printable_text.hpp"
#include "model/draft_heads.hpp"
#include "model/folder/model_config.hpp"
#include "model/folder/model_files.hpp"

namespace dculab::engine {
namespace {

// Quantized exports keep integers under other names; say so rather than only "missing".
std::string hint_for_missing(const Checkpoint& checkpoint, const std::string& name) {
  const std::string quantized = name.substr(0, name.rfind('.')) + ".qweight";
  if (checkpoint.find(quantized).tensor != nullptr)
    return "; the checkpoint is quantized, but neither config.json nor quantize_config.json says how";
  return "; config.json asks for it";
}

// A view of the whole tensor as the file has it.
kernels::WeightView checked_view(const Checkpoint& checkpoint, const TensorSlot& slot) {
  const auto [tensor, file] = checkpoint.find(slot.name);
  if (tensor == nullptr)
    throw InputError(file, "tensor '" + slot.name + "' is missing" + hint_for_missing(checkpoint, slot.name));
  std::vector<std::int64_t> expected{slot.tensor_rows()};
  if (slot.stacked > 0) expected = {slot.stacked, slot.tensor_rows() / slot.stacked};
  if (slot.columns > 0) expected.push_back(slot.columns);
  if (tensor->shape != expected)
    throw InputError(file, "tensor '" + slot.name + "' has shape " + to_string(tensor->shape) +
                               ", but config.json makes it " + to_string(expected));
  const auto dtype = parse_dtype(tensor->dtype);
  if (!dtype || (*dtype != Dtype::f32 && *dtype != Dtype::f16 && *dtype != Dtype::bf16))
    throw InputError(file, "tensor '" + slot.name + "' has dtype " + shortened(tensor->dtype) +
                               ", which is not supported (F32, F16, BF16)");
  return {tensor->bytes.data(), *dtype, slot.rows};
}

// A plan knows one dtype for the matrices. Norms may differ: some exports keep them in F32.
void require_one_dtype(const Checkpoint& checkpoint, const std::vector<TensorSlot>& slots, Dtype dtype) {
  for (const TensorSlot& slot : slots)
    if (slot.columns > 0 && slot.view->dtype != dtype)
      throw InputError(checkpoint.find(slot.name).file,
                       "tensor '" + slot.name + "' is " + std::string(name(slot.view->dtype)) +
                           ", but other matrices are " + std::string(name(dtype)) + "; mixed dtypes are not supported");
}

// Moves the slots of matrices that are quantized out of `slots`.
std::vector<TensorSlot> take_quantized_matrices(const ModelWeights& weights, std::vector<TensorSlot>& slots) {
  const auto first = std::stable_partition(
      slots.begin(), slots.end(), [&](const TensorSlot& slot) { return !is_quantized_in(weights.shape, slot); });
  std::vector<TensorSlot> taken(first, slots.end());
  slots.erase(first, slots.end());
  return taken;
}

std::size_t value_bytes(Dtype dtype) { return static_cast<std::size_t>(bits(dtype)) / 8; }

// What a slot is copied to.
Dtype copied_dtype(const TensorSlot& slot) { return slot.widened ? Dtype::f32 : slot.view->dtype; }

std::size_t copied_bytes(const TensorSlot& slot) { return slot.values() * value_bytes(copied_dtype(slot)); }

void require_finite(const Checkpoint& checkpoint, const std::vector<TensorSlot>& slots) {
  std::string checked;
  for (const TensorSlot& slot : slots) {
    if (std::exchange(checked, slot.name) == slot.name) continue;  // Q, K and V may be parts of one tensor
    const auto [tensor, file] = checkpoint.find(slot.name);
    if (!all_finite(tensor->bytes, slot.view->dtype))
      throw InputError(file,
                       "tensor " + in_quotes(slot.name) +
                           " has a weight that is NaN or infinite (the checkpoint is damaged); download it again");
  }
}

// Kernels read whole values; the format promises no alignment.
void require_alignment(const TensorSlot& slot, const std::string& file) {
  if (reinterpret_cast<std::uintptr_t>(slot.view->data) % value_bytes(slot.view->dtype) != 0)
    throw InputError(file, "tensor '" + slot.name +
                               "' is not aligned to its values and cannot be used in place; "
                               "load the weights into huge pages");
}

// Copies the slot's rows out of the tensor that its view shows.
void copy_slot(const TensorSlot& slot, std::byte* destination) {
  const std::size_t row_bytes = static_cast<std::size_t>(std::max(1, slot.columns)) * value_bytes(slot.view->dtype);
  const RowPick pick = slot.is_part() ? slot.pick : RowPick{slot.rows, 0, slot.rows, slot.rows};
  std::vector<std::byte> stored(slot.widened ? static_cast<std::size_t>(slot.rows) * row_bytes : 0);
  std::byte* to = slot.widened ? stored.data() : destination;
  const std::size_t run_bytes = static_cast<std::size_t>(pick.run) * row_bytes;
  for (int row = pick.first; row < pick.tensor_rows; row += pick.stride, to += run_bytes)
    std::memcpy(to, static_cast<const std::byte*>(slot.view->data) + static_cast<std::size_t>(row) * row_bytes,
                run_bytes);
  if (slot.widened)
    widen(stored.data(), slot.view->dtype, std::span(reinterpret_cast<float*>(destination), slot.values()));
}

// Mapped weights are used where they lie, except parts of a tensor and what must become F32.
bool needs_copy(const TensorSlot& slot, WeightMemory memory) {
  return memory == WeightMemory::huge_pages || slot.is_part() || (slot.widened && slot.view->dtype != Dtype::f32);
}

std::shared_ptr<const AnonymousMemory> copy_weights(const std::vector<TensorSlot>& slots, WeightMemory kept) {
  std::size_t total = 0;
  for (const TensorSlot& slot : slots)
    if (needs_copy(slot, kept)) total += rounded_to_line(copied_bytes(slot));
  require_memory("the model's weights", Bytes(static_cast<double>(total)),
                 "use a smaller model, or one in F16 instead of F32");
  auto memory = std::make_shared<const AnonymousMemory>(total);
  std::byte* next = memory->data();
  for (const TensorSlot& slot : slots) {
    if (!needs_copy(slot, kept)) continue;
    copy_slot(slot, next);
    const std::size_t bytes = rounded_to_line(copied_bytes(slot));
    slot.view->dtype = copied_dtype(slot);
    slot.view->data = next;
    next += bytes;
  }
  return memory;
}

// LongRoPE has other factors beyond its original context, for the whole of a sequence that is longer. We have the short
// ones.
void keep_original_context(ModelShape& shape) {
  for (const LayerKind& kind : shape.kinds) {
    const Rotation rotation(kind);
    const RopeScaling& scaling = rotation.position.rope_scaling;
    if (scaling.kind == RopeScalingKind::longrope)
      shape.max_position_embeddings = std::min(shape.max_position_embeddings, scaling.original_max_position_embeddings);
  }
}

// Lets the views of `slots`, which are parts of `weights`, point to their values.
void fill_slots(const std::filesystem::path& folder, const std::shared_ptr<const Checkpoint>& checkpoint,
                WeightMemory memory, std::vector<TensorSlot> slots, ModelWeights& weights) {
  const bool is_fp8 = has_fp8_layers(weights.shape);
  const auto quantization = is_fp8 ? std::nullopt : read_quantization_config(folder);
  std::vector<TensorSlot> quantized_slots;
  if (quantization || is_fp8) quantized_slots = take_quantized_matrices(weights, slots);
  for (const TensorSlot& slot : slots) *slot.view = checked_view(*checkpoint, slot);
  weights.shape.dtype =
      weights.outer[WeightSlot::embed_tokens].weights[0].dtype;  // what is stored, whatever config.json says
  require_one_dtype(*checkpoint, slots, weights.shape.dtype);
  require_finite(*checkpoint, slots);
  if (quantization) load_packed_layers(*checkpoint, *quantization, quantized_slots, weights);
  if (is_fp8) {
    load_fp8_layers(folder, *checkpoint, quantized_slots, weights);
    slots.insert(slots.end(), quantized_slots.begin(), quantized_slots.end());  // their values are copied as others are
  }
  if (memory == WeightMemory::mapped) {
    for (const TensorSlot& slot : slots)
      if (!needs_copy(slot, memory)) require_alignment(slot, checkpoint->find(slot.name).file);
    weights.memory.push_back(checkpoint);
  }
  weights.memory.push_back(copy_weights(slots, memory));
}

ModelShape runnable_shape(const std::filesystem::path& folder) {
  ModelShape shape = read_model_shape(folder);
  require_tensor_names(shape);
  keep_original_context(shape);
  return shape;
}

// "model.layers.2."
std::string layer_prefix(const ModelShape& shape, int layer) {
  return std::string(shape.tensor_names->model).append(shape.tensor_names->layers) + std::to_string(layer) + ".";
}

// Those of the one layer, as its tensors are called; without what it shares with the model.
std::vector<TensorSlot> mtp_slots(MtpWeights& weights, int layer) {
  const int hidden = weights.layer.shape.hidden_size;
  const std::string first = layer_prefix(weights.layer.shape, 0), own = layer_prefix(weights.layer.shape, layer);
  std::vector<TensorSlot> slots = tensor_slots(weights.layer);
  std::erase_if(slots, [](const TensorSlot& slot) {
    return slot.slot == WeightSlot::embed_tokens || slot.slot == WeightSlot::lm_head;
  });
  for (TensorSlot& slot : slots)
    slot.name =
        slot.slot == WeightSlot::final_norm ? own + "shared_head.norm.weight" : own + slot.name.substr(first.size());
  slots.push_back({.name = own + "enorm.weight", .rows = hidden, .view = &weights.enorm, .kind = SlotKind::norm});
  slots.push_back({.name = own + "hnorm.weight", .rows = hidden, .view = &weights.hnorm, .kind = SlotKind::norm});
  slots.push_back({.name = own + "eh_proj.weight",
                   .rows = hidden,
                   .columns = 2 * hidden,
                   .view = &weights.eh_proj,
                   .is_plain = true});
  return slots;
}

}  // namespace

ModelWeights load_weights(const std::filesystem::path& folder, WeightMemory memory) {
  ModelWeights weights;
  weights.shape = runnable_shape(folder);
  std::vector<TensorSlot> slots = tensor_slots(weights);
  const auto checkpoint = std::make_shared<const Checkpoint>(folder);
  use_fused_experts(*checkpoint, weights.shape, slots);
  fill_slots(folder, checkpoint, memory, std::move(slots), weights);
  weights.kv_scales = read_kv_scales(*checkpoint, weights);
  tie_head(weights);
  if (std::filesystem::exists(folder / kKvCalibrationFile))
    weights.kv_calibration = [folder, shape = weights.shape] { return load_kv_calibration(folder, shape); };
  return weights;
}

MtpWeights load_mtp_weights(const std::filesystem::path& folder, WeightMemory memory, const ModelWeights& model) {
  const std::string file = (folder / "config.json").string();
  const JsonFields fields(file, read_model_text(file));
  if (fields.integer("num_nextn_predict_layers", 0) < 1)
    fields.refuse("num_nextn_predict_layers",
                  "must be at least 1: the checkpoint has no layer that predicts further tokens");
  const ModelShape shape = runnable_shape(folder);
  MtpWeights weights;
  weights.layer.shape = mtp_shape(shape);
  weights.layer.outer[WeightSlot::embed_tokens] = model.outer[WeightSlot::embed_tokens];
  fill_slots(folder, std::make_shared<const Checkpoint>(folder), memory, mtp_slots(weights, shape.num_layers()),
             weights.layer);
  weights.layer.outer[WeightSlot::lm_head] = model.outer[WeightSlot::lm_head];
  weights.layer.memory.insert(weights.layer.memory.end(), model.memory.begin(), model.memory.end());
  return weights;
}

}  // namespace dculab::engine

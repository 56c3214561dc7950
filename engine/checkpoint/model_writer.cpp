#include "engine/checkpoint/model_writer.hpp"

#include <string>
#include <vector>

#include "engine/checkpoint/model_folder.hpp"
#include "engine/checkpoint/read_text.hpp"
#include "engine/checkpoint/safetensors_writer.hpp"
#include "fields/json_text.hpp"
#include "files/output.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

std::string tensor_dtype(Dtype dtype) {
  if (dtype == Dtype::f32) return "F32";
  return dtype == Dtype::f16 ? "F16" : "BF16";
}

std::vector<TensorToWrite> tensors_of(ModelWeights& weights) {
  std::vector<TensorToWrite> tensors;
  for (const TensorSlot& slot : tensor_slots(weights)) {
    const std::size_t bytes = slot.values() * static_cast<std::size_t>(bits(slot.view->dtype)) / 8;
    TensorToWrite tensor{slot.name, tensor_dtype(slot.view->dtype), {slot.rows}, {}};
    if (slot.columns > 0) tensor.shape.push_back(slot.columns);
    tensor.bytes = {static_cast<const std::byte*>(slot.view->data), bytes};
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::string with_kv_heads(const fs::path& config, int num_key_value_heads) {
  Node fields = parse_json(config.string(), 1, read_text(config.string()));
  Node* const text = fields.find("hidden_size") == nullptr ? fields.find("text_config") : nullptr;
  set_member(text == nullptr ? fields : *text, "num_key_value_heads",
             parse_json(config.string(), 1, std::to_string(num_key_value_heads)));
  return json_text(fields, 2) + '\n';
}

}  // namespace

void write_model(const fs::path& folder, const ModelWeights& weights, const fs::path& source) {
  ModelWeights written = weights;  // tensor_slots wants to be able to set the views
  make_folder(folder, [&](const fs::path& to) {
    files::write_file_atomically(to / "config.json",
                                 with_kv_heads(source / "config.json", weights.shape.heads().num_key_value_heads));
    copy_companion_files(source, to);
    write_safetensors(to / "model.safetensors", tensors_of(written));
  });
}

}  // namespace dculab::engine

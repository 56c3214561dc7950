#include "engine/checkpoint/model_writer.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "engine/checkpoint/kv_scales.hpp"
#include "engine/checkpoint/model_folder.hpp"
#include "engine/checkpoint/safetensors_writer.hpp"
#include "fields/json_text.hpp"
#include "files/output.hpp"
#include "model/folder/model_files.hpp"
#include "model/model_config.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

std::string tensor_dtype(Dtype dtype) {
  if (dtype == Dtype::f32) return "F32";
  return dtype == Dtype::f16 ? "F16" : "BF16";
}

std::size_t stored_bytes(const TensorSlot& slot, std::size_t values) {
  return values * static_cast<std::size_t>(bits(slot.view->dtype)) / 8;
}

// Puts the rows of a part to their places in the tensor of several.
void place_rows(const TensorSlot& slot, std::byte* tensor) {
  const std::size_t row = stored_bytes(slot, static_cast<std::size_t>(std::max(1, slot.columns)));
  const auto* const rows = static_cast<const std::byte*>(slot.view->data);
  for (int i = 0; i < slot.rows; ++i)
    std::memcpy(tensor + static_cast<std::size_t>(slot.tensor_row(i)) * row, rows + static_cast<std::size_t>(i) * row,
                row);
}

// What a checkpoint has: parts of one tensor are put together in memory of `fused`.
std::vector<TensorToWrite> tensors_of(ModelWeights& weights, std::deque<std::vector<std::byte>>& fused) {
  std::vector<TensorToWrite> tensors;
  std::map<std::string, std::byte*> begun;
  for (const TensorSlot& slot : tensor_slots(weights)) {
    const auto columns = static_cast<std::size_t>(std::max(1, slot.columns));
    const std::size_t bytes = stored_bytes(slot, static_cast<std::size_t>(slot.tensor_rows()) * columns);
    if (const auto found = begun.find(slot.name); found != begun.end()) {
      place_rows(slot, found->second);
      continue;
    }
    TensorToWrite tensor{slot.name, tensor_dtype(slot.view->dtype), {slot.tensor_rows()}, {}};
    if (slot.columns > 0) tensor.shape.push_back(slot.columns);
    tensor.bytes = {static_cast<const std::byte*>(slot.view->data), bytes};
    if (slot.is_part()) {
      tensor.bytes = fused.emplace_back(bytes);
      begun[slot.name] = fused.back().data();
      place_rows(slot, fused.back().data());
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Node integers(const std::vector<int>& values) {
  std::string text = "[";
  for (const int value : values) {
    if (text.size() > 1) text += ',';
    text += std::to_string(value);
  }
  text += ']';
  return parse_json("", 1, text);
}

void set_own_groups(Node& fields, const ModelShape& shape) {
  std::vector<int> kv_heads, queries, slopes;
  for (int layer = 0; layer < shape.num_layers(); ++layer) {
    const Gqa& attention = shape.layer(layer).gqa();
    const Heads heads = attention.heads;
    kv_heads.push_back(heads.num_key_value_heads);
    const std::vector<int> equal(static_cast<std::size_t>(heads.num_key_value_heads), heads.group_size());
    const std::vector<int>& sizes = attention.group_sizes.empty() ? equal : attention.group_sizes;
    queries.insert(queries.end(), sizes.begin(), sizes.end());
    std::vector<int> own(static_cast<std::size_t>(heads.num_attention_heads));
    std::iota(own.begin(), own.end(), 0);
    const std::vector<int>& moved = attention.position.alibi_heads.empty() ? own : attention.position.alibi_heads;
    slopes.insert(slopes.end(), moved.begin(), moved.end());
  }
  const Node* const type = fields.find("model_type");
  if (type != nullptr && fields.find("grouped_model_type") == nullptr)
    set_member(fields, "grouped_model_type", Node(*type));
  set_member(fields, "model_type", parse_json("", 1, "\"dculab_grouped\""));
  set_member(fields, "layer_kv_heads", integers(kv_heads));
  set_member(fields, "kv_head_queries", integers(queries));
  const auto has_moved = [](const LayerKind& kind) { return !kind.gqa().position.alibi_heads.empty(); };
  if (std::ranges::any_of(shape.kinds, has_moved)) set_member(fields, "alibi_heads", integers(slopes));
}

bool has_attention_of(const ModelShape& read, const ModelShape& shape) {
  if (read.num_layers() != shape.num_layers()) return false;
  for (int layer = 0; layer < shape.num_layers(); ++layer)
    if (read.layer(layer).attention != shape.layer(layer).attention) return false;
  return true;
}

}  // namespace

std::string config_with_heads(const fs::path& source, const ModelShape& shape) {
  const std::string file = (source / "config.json").string();
  const Node config = parse_json(file, 1, read_model_text(file));
  for (const bool own_groups : {false, true}) {
    Node fields = config;
    Node* const inside = fields.find("hidden_size") == nullptr ? fields.find("text_config") : nullptr;
    Node& decoder = inside == nullptr ? fields : *inside;
    if (own_groups)
      set_own_groups(decoder, shape);
    else
      set_member(decoder, "num_key_value_heads",
                 parse_json(file, 1, std::to_string(shape.heads().num_key_value_heads)));
    std::string text = json_text(fields, 2) + '\n';
    try {
      if (has_attention_of(parse_model_shape(text, file, shape.name), shape)) return text;
    } catch (const InputError&) {
      if (own_groups) throw;
    }
  }
  throw InputError(file, "cannot be written with these KV heads");
}

void write_model(const fs::path& folder, const ModelWeights& weights, const fs::path& source) {
  ModelWeights written = weights;  // tensor_slots wants to be able to set the views
  const std::string config = config_with_heads(source, weights.shape);
  make_folder(folder, [&](const fs::path& to) {
    files::write_file_atomically(to / "config.json", config);
    copy_companion_files(source, to);
    std::deque<std::vector<std::byte>> fused;
    std::vector<TensorToWrite> tensors = tensors_of(written, fused);
    const std::map<std::string, float> scales = kv_scale_tensors(written, written.kv_scales);
    for (const auto& [name, scale] : scales) tensors.push_back({name, "F32", {1}, std::as_bytes(std::span(&scale, 1))});
    write_safetensors(to / "model.safetensors", std::move(tensors));
  });
}

}  // namespace dculab::engine

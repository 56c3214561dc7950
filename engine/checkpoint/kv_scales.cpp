#include "engine/checkpoint/kv_scales.hpp"

#include <array>
#include <cmath>
#include <optional>

#include "core/error.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "fields/printable_text.hpp"

namespace dculab::engine {
namespace {

// "model.layers.0.self_attn." of each layer with keys of its own; empty for the others.
std::vector<std::string> attention_prefixes(ModelWeights& weights) {
  std::vector<std::string> prefixes(static_cast<std::size_t>(weights.shape.num_layers()));
  for (const TensorSlot& slot : tensor_slots(weights)) {
    if (slot.slot != WeightSlot::qkv_proj || slot.part != kK || slot.kind != SlotKind::matrix) continue;
    const std::string module = slot.name.substr(0, slot.name.rfind('.'));
    prefixes[static_cast<std::size_t>(slot.layer)] = module.substr(0, module.rfind('.') + 1);
  }
  return prefixes;
}

float value_of(const StoredTensor& tensor, const std::string& file, const std::string& name) {
  const auto refuse = [&](const std::string& what) {
    throw InputError(file, "tensor " + in_quotes(name) + " " + what);
  };
  const auto dtype = parse_dtype(tensor.dtype);
  const bool is_plain = dtype && (*dtype == Dtype::f32 || *dtype == Dtype::f16 || *dtype == Dtype::bf16);
  if (!is_plain || tensor.bytes.size() * 8 != static_cast<std::size_t>(bits(*dtype)))
    refuse("is " + shortened(tensor.dtype) + to_string(tensor.shape) + "; a scale is one value of F32, F16 or BF16");
  std::array<float, 1> value{};
  widen(tensor.bytes.data(), *dtype, value);
  if (!std::isfinite(value[0]) || value[0] <= 0) refuse("is not a number above 0");
  return value[0];
}

// `which`: "k" or "v".
std::optional<float> find_scale(const Checkpoint& checkpoint, const std::string& prefix, const std::string& which) {
  const std::string scale = which + "_scale";
  for (const std::string& name : {prefix + scale, prefix + "attn." + scale, prefix + which + "_proj." + scale})
    if (const auto [tensor, file] = checkpoint.find(name); tensor != nullptr) return value_of(*tensor, file, name);
  return std::nullopt;
}

}  // namespace

std::vector<kernels::Fp8KvScales> read_kv_scales(const Checkpoint& checkpoint, ModelWeights& weights) {
  std::vector<kernels::Fp8KvScales> scales(weights.layers.size());
  std::size_t found = 0, wanted = 0;
  std::string missing;
  const auto take = [&](float& to, const std::string& prefix, const std::string& which) {
    const auto value = find_scale(checkpoint, prefix, which);
    ++wanted;
    if (value)
      ++found, to = *value;
    else if (missing.empty())
      missing = prefix + which + "_scale";
  };
  const std::vector<std::string> prefixes = attention_prefixes(weights);
  for (std::size_t layer = 0; layer < scales.size(); ++layer) {
    const int source = weights.shape.kv_source(static_cast<int>(layer));
    if (static_cast<std::size_t>(source) != layer) {
      scales[layer] = scales[static_cast<std::size_t>(source)];
    } else if (!prefixes[layer].empty()) {
      take(scales[layer].k, prefixes[layer], "k");
      take(scales[layer].v, prefixes[layer], "v");
    }
  }
  if (found == 0) return {};
  if (found < wanted)
    throw InputError(checkpoint.find(missing).file,
                     "tensor " + in_quotes(missing) + " is missing: other keys and values have scales");
  return scales;
}

std::map<std::string, float> kv_scale_tensors(ModelWeights& weights, const std::vector<kernels::Fp8KvScales>& scales) {
  std::map<std::string, float> tensors;
  const std::vector<std::string> prefixes = attention_prefixes(weights);
  for (std::size_t layer = 0; layer < scales.size(); ++layer) {
    if (prefixes[layer].empty() || weights.shape.kv_source(static_cast<int>(layer)) != static_cast<int>(layer))
      continue;
    tensors[prefixes[layer] + "k_scale"] = scales[layer].k;
    tensors[prefixes[layer] + "v_scale"] = scales[layer].v;
  }
  return tensors;
}

}  // namespace dculab::engine

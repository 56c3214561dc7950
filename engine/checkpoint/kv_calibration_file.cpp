#include "engine/checkpoint/kv_calibration_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "engine/checkpoint/mapped_file.hpp"
#include "engine/checkpoint/safetensors.hpp"
#include "engine/checkpoint/safetensors_writer.hpp"

namespace dculab::engine {
namespace {

// The tensors of a layer: visit(name, values, how many).
template <typename Layer, typename Visit>
void for_each_tensor(Layer& layer, std::size_t index, int kv_width, Visit&& visit) {
  const std::string prefix = "layers." + std::to_string(index) + ".";
  visit(prefix + "k_centre", layer.centres, kv_width);
  visit(prefix + "k_half_range", layer.half_ranges, kv_width);
  for (std::size_t i = 0; i < kCalibratedBits.size(); ++i) {
    const std::string bits = std::to_string(kCalibratedBits[i]);
    const int levels = 1 << kCalibratedBits[i];
    visit(prefix + "k_levels." + bits, layer.k[i].levels, levels);
    visit(prefix + "v_levels." + bits, layer.v[i].levels, levels);
    visit(prefix + "k_bounds." + bits, layer.k[i].bounds, levels - 1);
    visit(prefix + "v_bounds." + bits, layer.v[i].bounds, levels - 1);
  }
}

[[nodiscard]] bool is_of_codes(const std::string& tensor) {
  return tensor.find("_levels.") != std::string::npos || tensor.find("_bounds.") != std::string::npos;
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : name_(path.string()), file_(path), tensors_(read_tensor_table(file_.bytes(), name_)) {}

  // F32 of this shape, finite.
  [[nodiscard]] std::vector<float> read(const std::string& tensor, const std::vector<std::int64_t>& shape) const {
    const auto found = tensors_.find(tensor);
    if (found == tensors_.end()) throw InputError(name_, "has no tensor " + tensor);
    const StoredTensor& stored = found->second;
    if (stored.dtype != "F32" || stored.shape != shape)
      refuse(tensor, "must be F32 " + to_string(shape) + ", not " + stored.dtype + " " + to_string(stored.shape));
    std::vector<float> values(stored.bytes.size() / sizeof(float));
    std::memcpy(values.data(), stored.bytes.data(), stored.bytes.size());
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
      refuse(tensor, "holds what is not finite");
    return values;
  }

  [[noreturn]] void refuse(const std::string& tensor, const std::string& why) const {
    throw InputError(name_, tensor + " " + why);
  }

 private:
  std::string name_;
  MappedFile file_;
  TensorTable tensors_;
};

}  // namespace

std::shared_ptr<const KvCalibration> load_kv_calibration(const std::filesystem::path& folder, const ModelShape& model) {
  const std::filesystem::path path = folder / kKvCalibrationFile;
  if (!std::filesystem::exists(path)) return nullptr;
  const Reader reader(path);
  auto calibration = std::make_shared<KvCalibration>();
  calibration->layers.resize(static_cast<std::size_t>(model.num_layers()));
  for (std::size_t index = 0; index < calibration->layers.size(); ++index) {
    const LayerKind& kind = model.layer(static_cast<int>(index));
    if (!kind.has_kv_heads() || kind.gqa().shares_kv) continue;
    for_each_tensor(calibration->layers[index], index, kind.gqa().heads.kv_width(),
                    [&](const std::string& tensor, std::vector<float>& values, int count) {
                      values = reader.read(tensor, {count});
                      if (is_of_codes(tensor) && !std::ranges::is_sorted(values))
                        reader.refuse(tensor, "does not ascend");
                    });
  }
  return calibration;
}

void write_kv_calibration(const KvCalibration& calibration, const std::filesystem::path& path) {
  std::vector<TensorToWrite> tensors;
  for (std::size_t index = 0; index < calibration.layers.size(); ++index)
    for_each_tensor(calibration.layers[index], index, 0,
                    [&](std::string tensor, const std::vector<float>& values, int) {
                      if (!values.empty())
                        tensors.push_back({.name = std::move(tensor),
                                           .dtype = "F32",
                                           .shape = {std::ssize(values)},
                                           .bytes = std::as_bytes(std::span(values))});
                    });
  write_safetensors(path, std::move(tensors));
}

KvFisher load_kv_fisher(const std::filesystem::path& path, int layer, std::size_t tokens, int kv_width) {
  const Reader reader(path);
  const auto read = [&](const char* which) {
    const std::string tensor = "layers." + std::to_string(layer) + "." + which + "_fisher";
    std::vector<float> weights = reader.read(tensor, {static_cast<std::int64_t>(tokens), kv_width});
    if (std::ranges::any_of(weights, [](float weight) { return weight < 0; }))
      reader.refuse(tensor, "holds what is negative");
    return weights;
  };
  return {.k = read("k"), .v = read("v")};
}

}  // namespace dculab::engine

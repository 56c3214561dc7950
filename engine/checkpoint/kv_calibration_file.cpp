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
    visit(prefix + "k_levels." + bits, layer.k_levels[i], 1 << kCalibratedBits[i]);
    visit(prefix + "v_levels." + bits, layer.v_levels[i], 1 << kCalibratedBits[i]);
  }
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : name_(path.string()), file_(path), tensors_(read_tensor_table(file_.bytes(), name_)) {}

  void read(const std::string& tensor, std::vector<float>& values, int count) const {
    const auto found = tensors_.find(tensor);
    if (found == tensors_.end()) throw InputError(name_, "has no tensor " + tensor);
    const StoredTensor& stored = found->second;
    if (stored.dtype != "F32" || stored.shape != std::vector<std::int64_t>{count})
      throw InputError(name_, tensor + " must be F32 [" + std::to_string(count) + "], not " + stored.dtype + " " +
                                  to_string(stored.shape));
    values.resize(static_cast<std::size_t>(count));
    std::memcpy(values.data(), stored.bytes.data(), stored.bytes.size());
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
      throw InputError(name_, tensor + " holds what is not finite");
    if (tensor.find("_levels.") != std::string::npos && !std::ranges::is_sorted(values))
      throw InputError(name_, tensor + " does not ascend");
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
    for_each_tensor(
        calibration->layers[index], index, kind.gqa().heads.kv_width(),
        [&](const std::string& tensor, std::vector<float>& values, int count) { reader.read(tensor, values, count); });
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

}  // namespace dculab::engine

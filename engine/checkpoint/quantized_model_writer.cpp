#include "engine/checkpoint/quantized_model_writer.hpp"

#include <list>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/kv_calibration_file.hpp"
#include "engine/checkpoint/model_folder.hpp"
#include "engine/checkpoint/quantized_tensors.hpp"
#include "engine/checkpoint/safetensors.hpp"
#include "engine/checkpoint/safetensors_writer.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "files/output.hpp"
#include "model/folder/model_files.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeight = ".weight";
constexpr const char* kQuantizeConfig = "quantize_config.json";

// The tensors of the new file, and what they point into.
class TensorCollector {
 public:
  explicit TensorCollector(const QuantizedFolder& model) : model_(model), source_(model.source) {}

  [[nodiscard]] std::vector<TensorToWrite> collect() {
    // By tensor, since the source may name them without the prefix of the modules.
    std::map<const StoredTensor*, const kernels::QuantizedMatrix*> quantized;
    for (const auto& [module, matrix] : model_.modules) {
      const auto [tensor, file] = source_.find(module + std::string(kWeight));
      if (tensor == nullptr)
        throw InputError(file, "has no tensor '" + module + std::string(kWeight) +
                                   "'; save experts that share a tensor one by one (transformers: "
                                   "save_original_format=True) before they are quantized");
      quantized.emplace(tensor, matrix);
    }
    for (const auto& [name, scale] : model_.kv_scales)
      tensors_.push_back({name, "F32", {1}, std::as_bytes(std::span(&scale, 1))});
    for (const std::string& name : source_.names()) {
      if (model_.kv_scales.contains(name)) continue;
      const auto found = quantized.find(source_.find(name).tensor);
      if (found != quantized.end())
        add_module(name.substr(0, name.size() - kWeight.size()), *found->second);
      else
        add_plain(name);
    }
    return std::move(tensors_);
  }

 private:
  template <typename T>
  void add(const std::string& name, const char* dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
    tensors_.push_back({name, dtype, std::move(shape), std::as_bytes(std::span(values))});
  }

  void add_module(const std::string& module, const kernels::QuantizedMatrix& matrix) {
    const GptqTensors& packed = packed_.emplace_back(to_gptq_tensors(matrix, model_.record->config.format));
    const std::int64_t bits = matrix.bits;
    add(module + ".qweight", "I32", {matrix.columns * bits / 32, matrix.rows}, packed.qweight);
    add(module + ".qzeros", "I32", {matrix.groups(), matrix.rows * bits / 32}, packed.qzeros);
    add(module + ".scales", "F16", {matrix.groups(), matrix.rows}, packed.scales);
    add(module + ".g_idx", "I32", {matrix.columns}, packed.g_idx);
  }

  void add_plain(const std::string& name) {
    const StoredTensor& tensor = *source_.find(name).tensor;
    std::span<const std::byte> bytes = tensor.bytes;
    if (const auto changed = model_.changed.find(name); changed != model_.changed.end()) {
      std::vector<std::byte>& stored = stored_.emplace_back(tensor.bytes.size());
      narrow(changed->second, *parse_dtype(tensor.dtype), stored.data());
      bytes = stored;
    }
    tensors_.push_back({name, tensor.dtype, tensor.shape, bytes});
  }

  const QuantizedFolder& model_;
  Checkpoint source_;
  std::vector<TensorToWrite> tensors_;
  std::list<GptqTensors> packed_;
  std::list<std::vector<std::byte>> stored_;
};

void fill_folder(const QuantizedFolder& model, const fs::path& folder) {
  const fs::path beside = model.source / kQuantizeConfig;
  const std::string config = read_model_text((model.source / "config.json").string());
  if (model.record) {
    files::write_file_atomically(folder / "config.json", with_quantization_config(config, *model.record));
    files::write_file_atomically(folder / kQuantizeConfig, quantize_config_json(*model.record));
  } else {
    files::write_file_atomically(folder / "config.json", config);
    if (fs::exists(beside)) files::write_file_atomically(folder / kQuantizeConfig, read_model_text(beside.string()));
  }
  copy_companion_files(model.source, folder);
  TensorCollector tensors(model);
  write_safetensors(folder / "model.safetensors", tensors.collect());
  if (model.kv_calibration) write_kv_calibration(*model.kv_calibration, folder / kKvCalibrationFile);
}

}  // namespace

void write_quantized_model(const QuantizedFolder& model, const fs::path& output) {
  make_folder(output, [&model](const fs::path& folder) { fill_folder(model, folder); });
}

}  // namespace dculab::engine

#include "model/folder/model_files.hpp"

#include <algorithm>

#include "files/input.hpp"

namespace dculab {
namespace {

constexpr std::array kOwnFiles{"config.json", "quantize_config.json", "model.safetensors.index.json"};

}  // namespace

std::string read_model_text(const std::string& path) { return files::read_text(path, kLargestModelText); }

bool is_model_file(const std::filesystem::path& name) {
  const auto is_in = [&name](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  return name.extension() == ".safetensors" || is_in(kOwnFiles) || is_in(kCompanionFiles);
}

}  // namespace dculab

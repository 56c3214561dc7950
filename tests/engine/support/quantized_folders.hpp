// Quantized model folders on disk, for as long as a test runs.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/checkpoint/quantized_model_writer.hpp"
#include "engine/quantize/model_quantizer.hpp"

namespace dculab::engine {

class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() / ("dculab-quantize-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] std::filesystem::path path(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::vector<TokenId> random_tokens(int count, int vocab_size) {
  std::vector<TokenId> tokens;
  std::uint32_t state = 1;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    tokens.push_back(static_cast<TokenId>((state >> 8) % static_cast<std::uint32_t>(vocab_size)));
  }
  return tokens;
}

inline QuantizedFolder to_write(const QuantizedModel& model, const QuantizeOptions& options,
                                const std::filesystem::path& source) {
  QuantizedFolder result{
      .source = source,
      .record = QuantizationRecord{.config = options.config, .damp_percent = 0.01, .true_sequential = true, .method = "test"},
      .modules = {},
      .changed = model.changed};
  for (const QuantizedModule& module : model.modules) result.modules.emplace(module.name, &module.matrix);
  return result;
}

inline QuantizeOptions options_of(QuantizationMethod method, int bits, int group_size, QuantizedFormat format) {
  QuantizeOptions options;
  options.method = method;
  options.config = {.format = format, .bits = bits, .group_size = group_size, .desc_act = false, .sym = false};
  options.num_threads = 2;
  return options;
}

}  // namespace dculab::engine

// A tiny model as transformers saved it, with the prompts, logits and greedy tokens transformers computed.
#pragma once

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "engine/checkpoint/safetensors.hpp"

namespace dculab::engine {

inline const std::filesystem::path kGoldenFolder = std::filesystem::path(DCULAB_SOURCE_DIR) / "tests/golden/llama";
inline const std::vector<std::string> kGoldenVariants{"mha",         "gqa",         "mqa",     "tied",
                                                      "rope_linear", "rope_llama3", "sharded", "text"};

inline const std::filesystem::path kFamilyFolder = std::filesystem::path(DCULAB_SOURCE_DIR) / "tests/golden/families";
inline const std::vector<std::string> kFamilyVariants{
    "llama_biases",    "mistral",    "mistral_long", "qwen2",      "qwen2_window",        "bloom",
    "bloom_six_heads", "falcon_7b",  "falcon_40b",   "falcon_11b", "falcon_rw",           "qwen2_some_windows",
    "qwen3",           "gemma2",     "gemma3",       "phi3",       "phi3_longrope",       "glm4",
    "olmo2",           "llama_yarn", "llama_gelu",   "gpt_neox",   "gpt_neox_sequential", "starcoder2",
    "internlm2"};

inline const std::vector<std::string> kMixtureVariants{"mixtral", "mixtral_fused", "qwen2_moe", "qwen3_moe",
                                                       "glm4_moe"};

// With latent attention and mixtures of experts; and layers that read the K and V of an earlier one.
inline const std::vector<std::string> kLatentVariants{"deepseek_v2", "deepseek_v2_groups", "deepseek_v3"};
inline const std::vector<std::string> kCrossLayerVariants{"cla"};

struct GoldenPrompt {
  std::vector<TokenId> tokens;  // [n]
  std::vector<TokenId> greedy;  // what follows
  std::vector<float> logits;    // [n, vocab_size]
};

class GoldenModel {
 public:
  explicit GoldenModel(const std::string& variant, const std::filesystem::path& root = kGoldenFolder)
      : folder_(root / variant),
        file_(folder_ / "expected.safetensors"),
        tensors_(read_tensor_table(file_.bytes(), "expected.safetensors")) {
    for (int i = 0; tensors_.contains(numbered("prompt", i)); ++i)
      prompts_.push_back({read<TokenId>(numbered("prompt", i)), read<TokenId>(numbered("greedy", i)),
                          read<float>(numbered("logits", i))});
  }

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] const std::vector<GoldenPrompt>& prompts() const { return prompts_; }

  template <typename T>
  [[nodiscard]] std::vector<T> read(const std::string& tensor) const {
    const auto bytes = tensors_.at(tensor).bytes;
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  static std::string numbered(const char* kind, int index) { return std::string(kind) + "." + std::to_string(index); }

  std::filesystem::path folder_;
  MappedFile file_;
  TensorTable tensors_;
  std::vector<GoldenPrompt> prompts_;
};

}  // namespace dculab::engine

// The files that a model's folder is made of.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>

namespace dculab {

inline constexpr std::size_t kLargestModelText = 100'000'000;  // bytes, as of the header of a .safetensors file

// A whole file as text. Throws InputError when it cannot be read, is no regular file or is too large.
[[nodiscard]] std::string read_model_text(const std::string& path);

// What makes a Hugging Face folder complete beside config.json and the weights.
inline constexpr std::array kCompanionFiles{"generation_config.json",
                                            "tokenizer.json",
                                            "tokenizer_config.json",
                                            "tokenizer.model",
                                            "added_tokens.json",
                                            "special_tokens_map.json",
                                            "vocab.json",
                                            "merges.txt",
                                            "chat_template.jinja"};

// Whether a model is made of files of this name: configuration, tokenizer, weights.
[[nodiscard]] bool is_model_file(const std::filesystem::path& name);

}  // namespace dculab

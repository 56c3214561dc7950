// Configurations with the sizes that every family has, and what is said of them.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "core/error.hpp"
#include "model/model_config.hpp"

namespace dculab {

[[nodiscard]] inline ModelShape shipped_dense(const std::string& name) {
  const std::string file = DCULAB_SOURCE_DIR "/scenarios/models/" + name + "/config.json";
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return parse_model_shape(text.str(), file, name);
}

// With the sizes that every family has.
[[nodiscard]] inline std::string config_of(const std::string& type, const std::string& fields) {
  return R"({
"model_type": ")" +
         type + R"(",
"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 100,
"torch_dtype": "bfloat16")" +
         fields + "}";
}

[[nodiscard]] inline ModelShape read_text_of(const std::string& text) {
  return parse_model_shape(text, "config.json", "small");
}

[[nodiscard]] inline ModelShape read_small(const std::string& type, const std::string& fields) {
  return read_text_of(config_of(type, fields));
}

[[nodiscard]] inline std::string refusal_of(const std::string& text) {
  try {
    (void)read_text_of(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace dculab

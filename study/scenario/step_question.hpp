// A question about a single step, by the words of `dculab predict`.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"

namespace dculab::study {

struct StepQuestion {
  std::string model;    // a folder with config.json, or a name
  std::string machine;  // a file, or a name
  std::string stack{};  // "": dculab
  std::string phase = "decode";
  int batch = 1;
  int context = 1024;
  int block_size = 0;  // 0 and empty: the default
  int kv_heads = 0;
  std::string kv_cache_dtype;
  std::string weights;
  std::string activations{};
  std::vector<std::string> set;  // key=value, any scenario key
};

// What --kv-cache-dtype says, also in vLLM's words, as scenarios write it. Throws InputError.
[[nodiscard]] std::string kv_cache_dtype_option(const std::string& word);

// The question as a scenario, so that it goes through the same checks as a file. Throws InputError, which names what
// was given as an option: "--batch 0".
[[nodiscard]] config::Scenario step_scenario(const StepQuestion& question);

}  // namespace dculab::study

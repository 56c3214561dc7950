// Text that this machine's engine generates after prompts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/generate/generator.hpp"

namespace dculab::study {

struct TextQuestion {
  std::string model;         // a Hugging Face folder, or a name under scenarios/models
  std::string prompt;        // the text to continue,
  std::string prompts_file;  // or a file with one a line
  int max_tokens = 128;      // after each, at most
  // Absent: the model's generation_config.json decides.
  std::optional<double> temperature, top_p;
  std::optional<int> top_k;
  std::optional<std::uint64_t> seed;
  bool ignore_eos = false;
  int n = 1;  // samples of each prompt
  engine::GeneratorOptions generator{};
};

struct GeneratedText {
  std::vector<std::string> prompts;  // of each completion
  engine::Generation generation;
};

// Lines that are not empty, of a file. Throws InputError where there is none.
[[nodiscard]] std::vector<std::string> read_prompts(const TextQuestion& question);

// A prompt that can never be served ends itself alone. Throws InputError for options that the model or the device does
// not do.
[[nodiscard]] GeneratedText generate_text(const TextQuestion& question, const std::vector<std::string>& prompts,
                                          const engine::OnText& on_text);

// Throws InputError where prompts were not served: of a file, how many and the first.
void refuse_unserved_prompts(const TextQuestion& question, const engine::Generation& generation);

}  // namespace dculab::study

// What names on the Hub say behind a model's own name: "Llama-3.1-8B-Instruct", "Qwen3-8B-AWQ".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dculab::study {

// Without "-Instruct", "-Chat", "-it" and "-hf" at its end, which leave the architecture as it is.
[[nodiscard]] std::string_view without_tuning(std::string_view name);

struct StoredName {
  std::string_view base;
  std::string_view weights;  // as --weights names the format
};

// Of a name that ends with the format of the weights, "-AWQ"; nothing of another.
[[nodiscard]] std::optional<StoredName> stored_name(std::string_view name);

// "did you mean 'llama-3.1-8b', 'llama-3.2-1b' or 'llama-3.2-3b'?": the known model that the name begins with, or the
// nearest of its family, the letters before the first digit ("llama", "qwen"); "" where none is known.
[[nodiscard]] std::string family_suggestion(std::string_view name, const std::vector<std::string>& known);

}  // namespace dculab::study

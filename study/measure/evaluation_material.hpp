// What `evaluate` judges models by, read before any model is loaded.
#pragma once

#include <string>
#include <vector>

#include "engine/evaluate/choice_evaluation.hpp"

namespace dculab::study {

struct EvaluationMaterial {
  std::string text;
  std::vector<std::vector<engine::ChoiceItem>> items;  // [question files]
};

// `text_file` may be empty. Questions are put as scripts/model/evaluate.py puts them. Throws InputError.
[[nodiscard]] EvaluationMaterial read_material(const std::string& text_file,
                                               const std::vector<std::string>& question_files);

// To go on after: pieces of the text, or else questions of the first file. Precondition: there is one of both.
[[nodiscard]] std::vector<std::string> prompts_of(const EvaluationMaterial& material, int count);

}  // namespace dculab::study

// What makes a shape unusable, and which keys of its config.json say so.
#pragma once

#include <string>
#include <vector>

#include "model/model_shape.hpp"

namespace dculab {

struct ModelProblem {
  std::vector<std::string> keys;  // that the value may stand under, by family; none where no single key is at fault
  std::string text;               // a sentence, as problems() has it
};

// All of problems(model).
[[nodiscard]] std::vector<ModelProblem> keyed_problems(const ModelShape& model);

}  // namespace dculab

// How many weights a model has.
#pragma once

#include <cstdint>

#include "model/model_shape.hpp"

namespace dculab {

// of_a_token: with those experts only that one token goes through.
enum class CountedExperts : std::uint8_t { all, of_a_token };

// Of the whole model. A tied head is counted once.
[[nodiscard]] double num_parameters(const ModelShape& model, CountedExperts experts);

}  // namespace dculab

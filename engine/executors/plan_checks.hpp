// A plan that was not made for an executor's model is a mistake of the program, not of its user.
#pragma once

#include <stdexcept>
#include <string>

#include "core/op.hpp"

namespace dculab::engine {

// Throws std::invalid_argument: "plan: op 'o_proj' has another shape".
inline void require(bool holds, const Op& op, const char* what) {
  if (!holds) throw std::invalid_argument("plan: op '" + std::string(op.name) + "' " + what);
}

}  // namespace dculab::engine

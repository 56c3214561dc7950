// What is known elsewhere of a question that accuracy would decide.
#pragma once

#include "cli/output/output.hpp"

namespace dculab::cli {

// What fewer KV heads cost other models, as published.
[[nodiscard]] Table elsewhere_table();

}  // namespace dculab::cli

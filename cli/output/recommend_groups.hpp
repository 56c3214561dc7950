// What other group sizes would bring to a recommended server, and what is known of their accuracy.
#pragma once

#include "cli/output/output.hpp"
#include "study/decide/serving_recommendation.hpp"

namespace dculab::cli {

[[nodiscard]] Table group_table(const study::Recommendation& result);

}  // namespace dculab::cli

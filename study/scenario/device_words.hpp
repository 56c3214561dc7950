// The words of a device's name or of a machine's, by which they are compared.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dculab::study {

// "gfx928:sramecc+, K100_AI" -> gfx928, sramecc, k100, ai.
[[nodiscard]] std::vector<std::string> device_words(std::string_view text);

}  // namespace dculab::study

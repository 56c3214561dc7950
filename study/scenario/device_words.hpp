// The words of a device's name or of a machine's, by which they are compared.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dculab::study {

// "gfx928:sramecc+, K100_AI" -> gfx928, sramecc, k100, ai.
[[nodiscard]] std::vector<std::string> device_words(std::string_view text);

// How many words of a machine's name a device's name has: "SXM4" has "sxm", too.
[[nodiscard]] std::ptrdiff_t words_said(const std::vector<std::string>& name, const std::vector<std::string>& device);

}  // namespace dculab::study

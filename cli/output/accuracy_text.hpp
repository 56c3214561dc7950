// What is known elsewhere of a question that accuracy would decide.
#pragma once

#include <string>

namespace dculab::cli {

// What fewer KV heads cost other models, as published: "measured on other models, ...: t5-xxl (average of 7 tasks):
// 8 KV heads lose 0.21 %, 1 loses 1.3 %; ..."
[[nodiscard]] std::string elsewhere_text();

}  // namespace dculab::cli

// What is known elsewhere of a question that accuracy would decide.
#pragma once

#include "present/output/report.hpp"

namespace dculab::present {

// What fewer KV heads cost other models, as published.
[[nodiscard]] Table elsewhere_table();

}  // namespace dculab::present

// The table and the JSON of `dculab predict`.
#pragma once

#include "present/output/report.hpp"
#include "study/answer/prediction.hpp"

namespace dculab::present {

// A row for each op; above them the step's time and memory, and what makes the figures less than they seem.
[[nodiscard]] Report prediction_report(const study::Prediction& prediction);

}  // namespace dculab::present

// What `dculab evaluate` found, as a table and as JSON.
#pragma once

#include "present/output/report.hpp"
#include "study/measure/evaluation.hpp"

namespace dculab::present {

[[nodiscard]] Report evaluation_report(const study::EvaluationAnswer& answer);

}  // namespace dculab::present

// The tables and the JSON of `dculab diagnose`.
#pragma once

#include "present/output/report.hpp"
#include "study/diagnose/diagnosis.hpp"

namespace dculab::present {

// What physics allows, what is predicted and what was measured; the causes, ranked; and what to try.
[[nodiscard]] Report diagnosis_report(const study::Diagnosis& diagnosis);

}  // namespace dculab::present

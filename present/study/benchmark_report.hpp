// How `validate` and `calibrate` show what benchmark tools measured.
#pragma once

#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "study/benchmarks/benchmark_fit.hpp"

namespace dculab::present {

// Predicted beside measured, result by result.
[[nodiscard]] Report benchmarks_report(const std::vector<study::BenchmarkCase>& cases);

// What was fitted, errors before and after; `files` below `folder` that were written.
[[nodiscard]] Report benchmark_fit_report(const std::vector<study::BenchmarkCase>& cases,
                                          const study::BenchmarkFit& fit, const std::string& folder,
                                          const std::vector<std::string>& files);

}  // namespace dculab::present

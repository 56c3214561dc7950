// Predicted against measured, by the words of `dculab validate`: scored, and reported.
#pragma once

#include <string>
#include <vector>

#include "present/output/show.hpp"
#include "study/benchmarks/benchmark_cases.hpp"
#include "study/validate/served_runs.hpp"

namespace dculab::present {

// Of traces or results of benchmark tools with their machine, of points, or of served runs.
struct ValidationQuestion {
  std::vector<std::string> files;        // traces, or results
  std::string machine;                   // that they are predicted on
  study::BenchmarkQuestion benchmark{};  // the rest of the question about results
  std::vector<std::string> points;
  std::vector<std::string> calibrate_on;  // points to learn from first
  std::string serving;
  study::ServedChoices served;
  std::vector<std::string> leave_one_out;  // some of left_out_choices()
  int worst = 0;                           // rows in the table, the worst first; 0 = all
};

// "machine", "source" ... of points, and "experiment" of served runs.
[[nodiscard]] std::vector<std::string> left_out_choices();

// Throws InputError for what does not go together.
[[nodiscard]] Report answered_validation(const ValidationQuestion& question);

}  // namespace dculab::present

// Predicted against measured, by the words of `dculab validate`: scored, and reported.
#pragma once

#include <string>
#include <vector>

#include "present/output/show.hpp"
#include "study/validate/served_runs.hpp"

namespace dculab::present {

// Of traces with their machine, of points, or of served runs.
struct ValidationQuestion {
  std::vector<std::string> traces;
  std::string machine;  // that the traces are predicted on
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

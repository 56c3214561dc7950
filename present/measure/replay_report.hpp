// How `dculab replay` shows what kernels touched beside the closed form.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "study/measure/replayed_ops.hpp"

namespace dculab::present {

// What was asked of all ops alike, as it was asked.
struct ReplayedStep {
  std::string model, machine, phase;
  int batch = 0, context = 0;
  std::size_t num_ops = 1;  // several: a column names them
};

[[nodiscard]] Report replay_report(const ReplayedStep& step, const std::vector<study::ReplayedOp>& ops);

}  // namespace dculab::present

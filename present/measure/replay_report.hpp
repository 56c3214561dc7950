// How `dculab replay` shows what kernels touched beside the closed form.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "present/output/show.hpp"
#include "study/measure/replayed_ops.hpp"

namespace dculab::present {

// What was asked of all ops alike, as it was asked.
struct ReplayedStep {
  std::string model, machine, phase;
  int batch = 0, context = 0;
  std::size_t num_ops = 1;  // several: a column names them
};

// CSV has a table of its own, with every level.
[[nodiscard]] Report replay_report(const ReplayedStep& step, const std::vector<study::ReplayedOp>& ops, Format format);

}  // namespace dculab::present

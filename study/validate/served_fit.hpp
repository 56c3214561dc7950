// What served runs teach of their server that nobody published: how long a request takes to reach the engine, and what
// its sampler costs. Each experiment is predicted with what the others teach.
//
//   x     = (per_request, log of the factors of per_step and of per_logit), about what the stack's file says
//   least = sum over others' mean latencies of (log(predicted / measured) / 0.1)^2 + sum over x of (x / sigma)^2
//
// Slopes are differences; the second of two linearisations is solved. Two runs of one load differ by 3 to 20 %: hence
// 0.1.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/serving_runs_file.hpp"
#include "sim/hardware/stack.hpp"
#include "study/validate/served_runs.hpp"

namespace dculab::study {

// Beside what a stack's file says.
struct ServerFigures {
  Seconds per_request;      // more than there
  double sampler_step = 1;  // times what is there
  double sampler_logit = 1;

  void apply_to(sim::Stack& stack) const;
};

struct FittedWithout {
  std::string experiment;
  ServerFigures figures;
};

struct ServedLeftOut {
  ServedRuns runs;  // each experiment as predicted with what the others teach
  std::vector<FittedWithout> fits;
};

// Throws InputError where nothing can be priced, and for less than 3 experiments.
[[nodiscard]] ServedLeftOut leave_experiments_out(const std::vector<config::ServedFigure>& figures,
                                                  const ServedChoices& choices);

}  // namespace dculab::study

// The points of a scenario's sweep over steps, ready to be priced or run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/step_plan.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/recommend.hpp"

namespace dculab::study {

struct StudyPoint {
  std::vector<config::Override> choices;
  ModelShape whole;
  ModelShape model;  // what each device has of it
  EngineOptions options;
  Batch batch;
  sim::Choice choice;
  std::optional<sim::Stack> stack;  // where the sweep chose another than the machine runs, or changed it
  std::size_t workload = 0;         // points that differ in KV heads and block size only share it
};

// `machine` running the point's stack. Where `machine` is `base`, for which the points were made, with figures of its
// stack changed, those of the point's stack change alike.
[[nodiscard]] sim::Machine machine_of(const StudyPoint& point, sim::Machine machine, const sim::Machine& base);

// All points of the sweep for a machine. Throws InputError.
[[nodiscard]] std::vector<StudyPoint> study_points(const config::Scenario& scenario, const sim::Machine& machine);
// Those of `sweep`, which are points of the scenario's.
[[nodiscard]] std::vector<StudyPoint> study_points(const config::Scenario& scenario, const sim::Machine& machine,
                                                   const std::vector<config::SweepPoint>& sweep);

// "block=16 batch=4"
[[nodiscard]] std::string point_label(const StudyPoint& point);

}  // namespace dculab::study

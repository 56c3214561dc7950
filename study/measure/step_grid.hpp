// A grid of single steps, measured on this machine's engine: what `bench` writes into a trace.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/dtype.hpp"
#include "engine/measure/step_bench.hpp"
#include "engine/parallel/division.hpp"
#include "model/trace.hpp"

namespace dculab::study {

// Where the axes of the grid meet.
struct GridStep {
  config::Scenario scenario;   // a step on "host"; its weights are those that are loaded
  std::string kv_cache_dtype;  // as it was asked for, for the step's name
};

struct StepGrid {
  std::string model;           // a folder, or a name under scenarios/models
  std::string random_weights;  // a dtype; empty: the folder's own weights
  std::vector<GridStep> steps;
  ActivationMode activations = ActivationMode::exact;
  engine::Division division{};
  engine::BenchOptions options{};
};

// The grid's steps with these weights' formats, in order. `loaded`: the shape of the weights. Throws InputError for a
// step that the model or the device does not do.
[[nodiscard]] std::vector<engine::BenchPoint> grid_points(const StepGrid& grid, const ModelShape& loaded);

// Throws InputError for what cannot be run.
[[nodiscard]] Trace measure_grid(const StepGrid& grid, const engine::BenchProgress& progress);

}  // namespace dculab::study

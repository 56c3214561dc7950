// A scenario's requests, which `simulate` simulates, served by the engine here in real time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/engine_options.hpp"
#include "engine/generate/serve.hpp"
#include "engine/measure/step_bench.hpp"
#include "model/few_heads.hpp"
#include "model/model_shape.hpp"
#include "model/trace.hpp"
#include "study/scenario/speculation.hpp"

namespace dculab::study {

struct ServedScenarioQuestion {
  config::Scenario scenario;  // its machine is not asked: it is this one
  engine::DeviceChoice device{};
  int threads = 0;                                     // of the CPU; 0: the scenario's measure.threads, or all cores
  engine::OpTiming op_timing = engine::OpTiming::off;  // on: the trace knows the ops
  std::optional<DraftChoice> drafter{};                // in the scenario's place
};

// A point of the scenario's sweep, served.
struct ServedSweepPoint {
  config::SweepPoint point;
  ModelShape model;
  EngineOptions options;
  std::optional<FewHeads> few_heads{};  // where there are two sets of KV heads
  int num_blocks = 0;                   // of KV cache, of each replica
  engine::ServedWorkload served;
  TraceHeader header{};  // which device and build served
};

struct ServedScenario {
  std::vector<ServedSweepPoint> points;
  Trace trace;  // steps of all points, by the last one's header; ids begin with the point's choices
};

// Every point of the sweep in turn. Throws InputError.
[[nodiscard]] ServedScenario serve_scenario(const ServedScenarioQuestion& question,
                                            const engine::BenchProgress& progress);

}  // namespace dculab::study

// What was measured: the steps an engine ran, with the time of every op. Written by the engine or by an importer,
// read by calibration and validation. Files are JSON Lines, see config/trace_file.hpp.
#pragma once

#include <string>
#include <vector>

#include "core/draft_counts.hpp"
#include "core/engine_options.hpp"
#include "core/expert_histogram.hpp"
#include "core/step_plan.hpp"
#include "core/units.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// Who measured, on what, and how.
struct TraceHeader {
  std::string machine;  // name of the machine description
  std::string device;   // what was run on, in words
  std::string build;    // compiler, version, kernel target
  int threads = 0;      // CPU engine: worker threads
  std::string timing;   // e.g. "median of 7 steps after 2 warm-ups, std::chrono::steady_clock"
  std::string created;  // ISO 8601
};

// One step as it was measured. The plan is not stored: it follows from model, options and batch.
struct TraceStep {
  std::string id;
  ModelShape model;
  EngineOptions options;
  Batch batch;       // lengths only
  Seconds duration;  // median over repeats
  Seconds spread;    // half the interquartile range over repeats
  int repeats = 0;
  std::vector<std::string> op_names;  // as in the plan; empty: ops were not timed
  // [op_names.size()], median over repeats, all executions together; 0 = not timed on its own (floor_check.hpp)
  std::vector<Seconds> op_durations;
  DraftCounts drafts{};     // what became of the tokens that the step verified, of one repeat
  Seconds drafting{};       // before the step, of one repeat: duration leaves it out
  ExpertHistogram experts;  // what the engine counted in all repeats; a file holds options.expert_load alone
};

struct Trace {
  TraceHeader header;
  std::vector<TraceStep> steps;
};

}  // namespace dculab

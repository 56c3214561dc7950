// `dculab bench --workload SCENARIO`: the requests that `dculab simulate` simulates, served by the engine here in real
// time, and the same figures of them.
#pragma once

#include <string>
#include <vector>

#include "cli/scenario/speculation_choices.hpp"
#include "engine/executors/open_executor.hpp"
#include "present/output/report.hpp"

namespace dculab::cli {

struct ScenarioBenchChoices {
  std::string scenario;  // a file, or a name under scenarios
  std::vector<std::string> set;
  engine::DeviceChoice device{};
  int threads = 0;         // of the CPU; 0: the scenario's measure.threads, or all cores
  std::string trace_file;  // empty: none
  SpeculationChoices speculation{};
};

// Every point of the scenario's sweep in turn. Its machine is not asked: it is this one. Throws InputError.
[[nodiscard]] present::Report bench_scenario(const ScenarioBenchChoices& choices);

}  // namespace dculab::cli

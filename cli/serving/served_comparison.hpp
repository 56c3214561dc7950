// What was served here beside what the simulator expects of it: metric by metric, at every point of a study.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "config/scenario_file.hpp"
#include "model/trace.hpp"
#include "sim/serving/simulated_server.hpp"
#include "study/measure/measured_serving.hpp"

namespace dculab::cli {

// A point of the sweep, with what its rounds gave.
struct ServedPoint {
  const config::SweepPoint* point;
  sim::SimulatedServer server;
  RequestWorkload workload;
  std::vector<std::vector<TraceStep>> other_rounds{};  // steps of the other requests
  std::vector<TraceStep> calibrating{};                // of these, those of the middle rounds
  TraceHeader header{};
  std::vector<std::map<std::string, double>> rounds{};  // of the own requests
  std::optional<engine::ServedWorkload> last{};         // the own requests in the last round
};

// A table of all points, which grows row by row; JSON `points[]` with it.
class ServedComparison {
 public:
  explicit ServedComparison(const config::SweepPoint& first);

  // `machine` is the calibrated one.
  void add(const ServedPoint& served, const sim::Machine& machine, Report& report);

  // The median of so many rounds was compared.
  void finish(int rounds, Report& report);

 private:
  Table table_;
  int within_ = 0;  // their limits
  int inside_ = 0;  // their intervals
};

}  // namespace dculab::cli

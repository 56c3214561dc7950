#include "study/evaluate/serving_intervals.hpp"

#include <algorithm>
#include <array>

#include "sim/serving/step_confidence.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/evaluate/serving_figures.hpp"
#include "study/scenario/request_workload.hpp"

namespace dculab::study {
namespace {

void widen(const std::map<std::string, double>& figures, Intervals& intervals) {
  for (const auto& [metric, figure] : figures)
    if (const auto found = intervals.find(metric); found != intervals.end()) {
      found->second.low = std::min(found->second.low, figure);
      found->second.high = std::max(found->second.high, figure);
    }
}

}  // namespace

Intervals serving_intervals(const sim::SimulatedServer& server, const RequestWorkload& workload,
                            const ServiceLevel& objective, const sim::StepConfidence& trust,
                            const std::map<std::string, double>& figures, int threads) {
  const auto figures_at = [&](double scale) {
    sim::SimulatedServer scaled = server;
    scaled.step_scale = scale;
    const sim::ServingRun run = sim::simulate(scaled, workload, objective);
    return run_figures(scaled, run);
  };
  const std::array scales{trust.low, trust.high};
  std::array<std::map<std::string, double>, scales.size()> found;
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&](std::uint64_t index) {
      found[index] = figures_at(scales[index]);
      return std::string();
    };
  };
  sim::work_in_order({0, scales.size()}, threads == 1 ? 1 : 2, make_worker, [](std::uint64_t, const std::string&) {});
  Intervals intervals;
  for (const auto& [metric, figure] : figures) intervals[metric] = {figure, figure};
  for (const std::map<std::string, double>& each : found) widen(each, intervals);
  return intervals;
}

void add_intervals(const config::SweepPoint& point, int threads, Simulation& simulation) {
  simulation.intervals = serving_intervals(simulation.server, resolve_requests(point.scenario, simulation.server.model),
                                           simulation.slo, simulation.trust, simulation.figures, threads);
}

}  // namespace dculab::study

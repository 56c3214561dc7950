#include "cli/serving/serving_interval.hpp"

#include <algorithm>
#include <array>

#include "cli/serving/measured_serving.hpp"
#include "sim/serving/step_confidence.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/scenario/request_workload.hpp"

namespace dculab::cli {
namespace {

constexpr std::array kShown{"requests_per_second",
                            "output_tokens_per_second",
                            "goodput",
                            "ttft_p50",
                            "ttft_p99",
                            "tpot_p50",
                            "tpot_p99",
                            "itl_p99",
                            "latency_p50",
                            "latency_p99"};

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
    return compared_figures(run.metrics, run.num_steps);
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
  simulation.intervals =
      serving_intervals(simulation.server, study::resolve_requests(point.scenario, simulation.server.model),
                        simulation.slo, simulation.trust, simulation.figures, threads);
}

std::string trust_text(const sim::StepConfidence& trust) {
  return number(trust.low) + " to " + number(trust.high) + " times their price at 90 % (" +
         std::string(sim::explanation(trust.basis)) + ")";
}

Table interval_table(const Simulation& simulation) {
  Table table;
  table.title = "90 % intervals";
  table.columns = {"figure", "simulated", "from", "to"};
  for (const std::string metric : kShown) {
    const auto interval = simulation.intervals.find(metric);
    if (interval == simulation.intervals.end()) continue;
    table.rows.push_back({metric, figure_cell(metric, simulation.figures.at(metric)),
                          figure_cell(metric, interval->second.low), figure_cell(metric, interval->second.high)});
  }
  table.notes = {"The same requests served twice more, with all steps at either end of what they take: " +
                 trust_text(simulation.trust) + "."};
  if (simulation.server.deployment.is_disaggregated())
    table.notes.emplace_back("KV transfers between replicas take what they are priced in all three.");
  return table;
}

}  // namespace dculab::cli

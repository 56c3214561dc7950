#include "study/decide/expected_service.hpp"

#include <cmath>
#include <map>
#include <string>

#include "sim/memory/capacity.hpp"
#include "sim/serving/step_sample.hpp"
#include "study/evaluate/serving_figures.hpp"
#include "study/evaluate/serving_intervals.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] ExpectedFigure figure(const Intervals& intervals, const std::map<std::string, double>& figures,
                                    const std::string& metric) {
  const auto found = figures.find(metric);
  if (found == figures.end()) return {};
  const sim::Range& range = intervals.at(metric);
  return {Seconds(found->second), Seconds(range.low), Seconds(range.high)};
}

[[nodiscard]] std::optional<double> optional_figure(const std::map<std::string, double>& figures,
                                                    const std::string& metric) {
  const auto found = figures.find(metric);
  return found == figures.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

ExpectedService expected_service(const sim::SimulatedServer& server, const RequestWorkload& workload,
                                 const ServiceLevel& slo) {
  sim::StepSample sample(sim::kSampledSteps);
  const sim::ServingRun run =
      sim::simulate(server, workload, slo, {.on_step = [&](const ServedStep& step, int) { sample.add(step); }});
  const std::map<std::string, double> figures = run_figures(server, run);
  const sim::StepConfidence trust = sim::step_confidence(server, sample.batches());
  constexpr int kBothAtOnce = 2;
  const Intervals intervals = serving_intervals(server, workload, slo, trust, figures, kBothAtOnce);
  return {.ttft_p90 = figure(intervals, figures, "ttft_p90"),
          .tpot_p90 = figure(intervals, figures, "tpot_p90"),
          .slo_attainment = run.metrics.share_within_objective(),
          .joules_per_output_token = optional_figure(figures, "joules_per_output_token"),
          .usd_per_million_tokens = optional_figure(figures, "usd_per_million_tokens")};
}

MemoryShare memory_share(const sim::ServingCase& serving, const sim::Setting& setting, const EngineOptions& options) {
  const int tokens = serving.load.prompt_tokens + serving.load.output_tokens;
  const sim::Capacity room = sim::capacity(serving.machine, sim::model_of(serving, setting), options, tokens);
  const double blocks_each = std::ceil(static_cast<double>(room.demand(tokens)) / options.block_size);
  const double sequences = static_cast<double>(options.max_num_seqs) * serving.devices.pipeline_parallel_size;
  const Bytes needed =
      room.weights + room.activations + room.kept_apart + room.buffers + room.block_bytes * (blocks_each * sequences);
  return {.set = options.gpu_memory_utilization, .needed = needed / serving.machine.dram().size};
}

}  // namespace dculab::study

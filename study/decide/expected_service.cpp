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

[[nodiscard]] std::optional<ExpectedFigure> figure(const Intervals& intervals,
                                                   const std::map<std::string, double>& figures,
                                                   const std::string& metric) {
  const auto found = figures.find(metric);
  if (found == figures.end()) return std::nullopt;
  const sim::Range& range = intervals.at(metric);
  return ExpectedFigure{found->second, range.low, range.high};
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
  const auto of = [&](const char* metric) { return figure(intervals, figures, metric); };
  return {.ttft_p90 = of("ttft_p90").value_or(ExpectedFigure{}),
          .tpot_p90 = of("tpot_p90").value_or(ExpectedFigure{}),
          .requests_per_second = of("requests_per_second").value_or(ExpectedFigure{}),
          .slo_attainment = *of("share_within_slo"),
          .requests = run.metrics.latency().count(),
          .slowest = trust.high,
          .joules_per_output_token = of("joules_per_output_token"),
          .usd_per_million_tokens = of("usd_per_million_tokens")};
}

MemoryShare memory_share(const sim::ServingCase& serving, const sim::Setting& setting, const EngineOptions& options,
                         int longest_request) {
  const sim::Capacity room = sim::capacity(serving.machine, sim::model_of(serving, setting), options, longest_request);
  const double blocks_each = std::ceil(static_cast<double>(room.demand(longest_request)) / options.block_size);
  const double sequences = static_cast<double>(options.max_num_seqs) * serving.devices.pipeline_parallel_size;
  const Bytes unmanaged = room.activations + room.buffers;
  const Bytes needed = room.weights + unmanaged + room.kept_apart + room.block_bytes * (blocks_each * sequences);
  const Bytes all = serving.machine.dram().size;
  const double share = needed / all;
  return {.needed = share, .chosen = options.gpu_memory_utilization, .unmanaged = unmanaged / all};
}

}  // namespace dculab::study

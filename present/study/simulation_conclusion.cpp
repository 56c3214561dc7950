#include "present/study/simulation_conclusion.hpp"

#include <algorithm>
#include <utility>

#include "config/unit_text.hpp"
#include "present/study/comparison_table.hpp"

namespace dculab::present {
namespace {

constexpr double kMedian = 0.5, kTail = 0.99;
constexpr const char* kThroughput = "output_tokens_per_second";

[[nodiscard]] bool has_limits(const ServiceLevel& slo) { return slo.ttft || slo.tpot || slo.latency || slo.slowdown; }

[[nodiscard]] bool is_within_slo(const study::Simulation& simulation) {
  return simulation.run.metrics.share_within_objective() >= simulation.slo.share;
}

// "half of them wait at most 0.2 s for the first token (P99: 0.5 s) and 30 ms for each further one (P99: 35 ms)"
[[nodiscard]] std::string waits_text(const ServingMetrics& metrics) {
  const auto quantiles = [](const QuantileSketch& values, const char* what) {
    return config::short_text(values.quantile(kMedian)) + " for " + what +
           " (P99: " + config::short_text(values.quantile(kTail)) + ")";
  };
  return "half of them wait at most " + quantiles(metrics.ttft(), "the first token") +
         (metrics.tpot().count() == 0 ? "" : " and " + quantiles(metrics.tpot(), "each further one"));
}

// "93 % of them are within the SLO, which asks for 90 %: it is met."
[[nodiscard]] std::string slo_text(const study::Simulation& simulation) {
  return percent(simulation.run.metrics.share_within_objective()) + " of them are within the SLO, which asks for " +
         percent(simulation.slo.share) + ": it is " + (is_within_slo(simulation) ? "met." : "missed.");
}

// "The largest part of the steps' time, 72 %, is bound by DRAM."; empty of no steps.
[[nodiscard]] std::string bound_text(const sim::ServingRun& run) {
  const auto most = std::ranges::max_element(run.time_by_bound, {}, [](const auto& bound) { return bound.second; });
  if (most == run.time_by_bound.end() || run.busy <= Seconds{}) return "";
  return "The largest part of the steps' time, " + percent(most->second / run.busy, 2) + ", is bound by " +
         most->first + (run.metrics.queue_grew() ? "; more requests arrive than are served, so the waits grow." : ".");
}

[[nodiscard]] std::vector<std::string> conclusion_of_one(const study::Simulation& simulation) {
  const ServingMetrics& metrics = simulation.run.metrics;
  std::vector<std::string> sentences{simulation.server.model.name + " on " + simulation.machines() + " serves " +
                                     number(simulation.figures.at("requests_per_second")) + " requests/s; " +
                                     waits_text(metrics) + "."};
  if (has_limits(simulation.slo)) sentences.front() += " " + slo_text(simulation);
  if (std::string bound = bound_text(simulation.run); !bound.empty()) sentences.push_back(std::move(bound));
  return sentences;
}

// "z100, block 16 is best by the objective: output_tokens_per_second 512."
[[nodiscard]] std::string best_text(const config::Scenario& scenario, const study::SimulationAnswer& answer) {
  const std::vector<study::Simulation>& all = answer.simulations;
  if (answer.choice && !answer.choice->best) return "No point of the sweep meets objective.subject_to.";
  const auto throughput = [](const study::Simulation& each) { return each.figures.at(kThroughput); };
  const study::Simulation& best =
      answer.choice ? all[*answer.choice->best] : *std::ranges::max_element(all, {}, throughput);
  const std::string metric = answer.choice ? scenario.objective.metric : kThroughput;
  return study::label(best) + (answer.choice ? " is best by the objective" : " serves the most") + ": " + metric + " " +
         figure_cell(metric, best.figures.at(metric)) + ".";
}

}  // namespace

std::vector<std::string> conclusion_of(const config::Scenario& scenario, const study::SimulationAnswer& answer) {
  const std::vector<study::Simulation>& all = answer.simulations;
  if (all.empty()) return {};
  if (all.size() == 1) return conclusion_of_one(all.front());
  std::vector<std::string> sentences{best_text(scenario, answer)};
  if (std::ranges::any_of(all, [](const auto& each) { return has_limits(each.slo); }))
    sentences.push_back(std::to_string(std::ranges::count_if(all, is_within_slo)) + " of the " +
                        std::to_string(all.size()) + " points meet the SLO.");
  return sentences;
}

}  // namespace dculab::present

#include "present/study/variant_text.hpp"

#include <algorithm>

#include "config/unit_text.hpp"
#include "present/study/service_tables.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::present {

std::string largest_share(const study::VariantCost& cost) {
  if (!cost.fits()) return "does not fit";
  const auto largest = std::max_element(cost.shares.begin(), cost.shares.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return largest->first + " " + percent(largest->second / cost.shared_time(), 2);
}

std::string figure_text(const std::string& metric, double value) {
  if (metric == "requests_per_second") return number(value) + " requests/s";
  if (metric.ends_with("tokens_per_second")) return number(value) + " tokens/s";
  if (metric.ends_with("tokens_per_second_per_node")) return number(value) + " tokens/s";
  return config::short_text(Seconds(value));
}

std::vector<std::string> run_assumptions(const config::Scenario& scenario) {
  if (scenario.workload.kind == config::WorkloadKind::step) return {};
  const RequestWorkload& work = scenario.workload.served;
  if (study::has_pools(scenario)) return service_assumptions(scenario);
  return {"assumed: " + std::to_string(work.requests) + " requests of " + exact_number(work.prompt.center) + " + " +
              exact_number(work.output.center) + " tokens unless a row says otherwise, all there from the start and" +
              " all alike",
          "assumed: prefill steps of whole prompts, then decode steps of a full batch at evenly spread contexts; no " +
              std::string("ramp, no preemption (sim/study/offline_run.hpp)")};
}

}  // namespace dculab::present

#include "study/scenario/asked_metrics.hpp"

#include <array>
#include <utility>

#include "core/error.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::study {
namespace {

// Each figure that a metric needs.
constexpr std::array<std::pair<const char*, const char*>, 4> kNeeded{
    {{"joules_per_output_token", "power.idle"},
     {"joules_per_output_token", "power.memory_bound"},
     {"joules_per_output_token", "power.compute_bound"},
     {"usd_per_million_tokens", "price_per_hour"}}};

}  // namespace

std::vector<std::string> asked_metrics(const config::Scenario& scenario) {
  std::vector<std::string> asked{scenario.objective.metric};
  for (const config::Constraint& constraint : scenario.objective.subject_to) asked.push_back(constraint.metric);
  for (const config::Aim& aim : scenario.pareto) asked.push_back(aim.metric);
  for (const config::Condition& condition : scenario.constraints)
    for (const std::string& name : condition.names()) asked.push_back(name);
  return asked;
}

void refuse_unstated_costs(const config::Scenario& scenario, const sim::Machine& machine) {
  for (const std::string& metric : asked_metrics(scenario)) {
    std::string missing;
    for (const auto& [of_metric, key] : kNeeded)
      if (metric == of_metric && !sim::figure_value(machine, key))
        missing.append(missing.empty() ? "" : ", ").append(key);
    if (missing.empty()) continue;
    throw InputError(scenario.file, metric + " follows from figures that the file of machine " + machine.name +
                                        " does not state: " + missing + "; add them there, or --set machine." +
                                        missing.substr(0, missing.find(',')) + "=...");
  }
}

}  // namespace dculab::study

#include "study/evaluate/compared_points.hpp"

#include "core/error.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::study {
namespace {

// One of the machines of the scenario that is studied, and its name or file there.
struct Listed {
  const config::Scenario& scenario;
  const std::string& name;
  const sim::Machine& machine;
};

// The machine that a variant or a point of the sweep is priced on, with its own figures and stack.
[[nodiscard]] sim::Machine machine_of(const config::Scenario& scenario, const Listed& listed) {
  if (!has_pools(scenario)) {
    require_one_device(scenario, "a study with compare");
    if (scenario.deployment.prefill || scenario.deployment.decode)
      throw InputError(scenario.file,
                       "deployment: prefill and decode are of pools; add prefill_replicas and decode_replicas");
  }
  const bool is_listed = scenario.machines == listed.scenario.machines;
  if (is_listed && same_machine_figures(scenario, listed.scenario)) return listed.machine;
  return resolve_machine(scenario, is_listed ? listed.name : scenario.machines.front());
}

[[nodiscard]] ComparedPoint cost_point(const config::SweepPoint& point, const config::Compare& compare,
                                       const Listed& listed) {
  ComparedPoint compared{&point, {cost_of(point.scenario, machine_of(point.scenario, listed))}};
  for (const config::Variant& variant : compare.variants) {
    const config::Scenario changed = config::with_changes(point.scenario, variant);
    compared.costs.push_back(cost_of(changed, machine_of(changed, listed)));
  }
  return compared;
}

}  // namespace

std::vector<ComparedPoint> compared_points(const config::Scenario& scenario,
                                           const std::vector<config::SweepPoint>& sweep, const std::string& name,
                                           const sim::Machine& listed) {
  std::vector<ComparedPoint> points;
  for (const config::SweepPoint& point : sweep)
    points.push_back(cost_point(point, *scenario.compare, {scenario, name, listed}));
  return points;
}

}  // namespace dculab::study

#include "study/scenario/refuse.hpp"

#include <algorithm>

#include "config/map_reader.hpp"
#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {

void refuse_key(const config::Scenario& scenario, const std::string& key, const std::vector<std::string>& found) {
  if (found.empty()) return;
  const Node* node = config::find_key(scenario.document, key);
  config::ProblemList problems(scenario.file);
  for (const std::string& problem : found) {
    if (node == nullptr) throw InputError(scenario.file, key + ": " + problem);
    problems.add(node->key_place, node->origin, key + ": " + problem);
  }
  problems.throw_if_any();
}

void refuse_deployment(const config::Scenario& scenario, const std::vector<std::string>& found) {
  refuse_key(scenario, "deployment", found);
}

void require_activations(ActivationMode activations, const ModelShape& model) {
  if (const std::string found = problem(activations, model); !found.empty())
    throw InputError("--activations " + std::string(name(activations)), found);
}

void refuse_unsupported(const config::Scenario& scenario) {
  const auto refuse = [&scenario](bool asked, const char* what) {
    if (asked) throw InputError(scenario.file, what);
  };
  const bool closed_form = scenario.compare || scenario.accuracy;
  const bool serves = scenario.workload.kind == config::WorkloadKind::serving;
  refuse(serves && !closed_form,
         "workload: requests are served by `dculab simulate`, or by a study with objective, pareto or constraints");
  refuse(closed_form && serves && !config::is_offline_run(scenario.workload),
         "workload: compare and accuracy take requests of one length that are all there at once");
  refuse(!scenario.measure.phases.empty(), "measure.phases: sweep workload.phase instead");
  refuse(closed_form && !scenario.decode_machine.empty(),
         "deployment.decode.machine: two kinds of machine are simulated, not compared in closed form; leave compare "
         "and accuracy out");
  if (closed_form && !(scenario.compare && has_pools(scenario)))
    require_one_device(scenario, "a study with compare or accuracy");
  const bool searches =
      scenario.document.find("objective") != nullptr || !scenario.pareto.empty() || !scenario.constraints.empty();
  refuse(closed_form && searches, "objective, pareto and constraints do not go with compare and accuracy");
}

void require_one_device(const config::Scenario& scenario, const std::string& what) {
  const bool sweeps_devices = std::ranges::any_of(
      scenario.sweep, [](const config::SweepAxis& axis) { return axis.key.starts_with("deployment"); });
  if (scenario.deployment.devices() == 1 && !sweeps_devices) return;
  refuse_deployment(scenario, {what + " is of one device; remove it"});
}

}  // namespace dculab::study

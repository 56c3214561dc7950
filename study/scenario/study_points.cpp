#include "study/scenario/study_points.hpp"

#include <map>
#include <string>
#include <utility>

#include "sim/hardware/figure.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::study {
namespace {

// The choices that make up the workload, as one text.
[[nodiscard]] std::string workload_text(const std::vector<config::Override>& choices) {
  std::string text;
  for (const auto& [key, value] : choices)
    if (key != "model.num_key_value_heads" && key != "kv_cache.block_size") text += key + "=" + value + " ";
  return text;
}

// `known`: those that were read, by name.
[[nodiscard]] sim::Stack swept_stack(const config::Scenario& point, sim::Machine machine,
                                     std::map<std::string, sim::Stack>& known) {
  const auto [place, is_new] = known.try_emplace(point.stack);
  if (is_new) place->second = resolve_stack(point.stack, machine);
  machine.stack = place->second;
  apply_stack_figures(point, machine);
  return std::move(machine.stack);
}

}  // namespace

sim::Machine machine_of(const StudyPoint& point, sim::Machine machine, const sim::Machine& base) {
  if (point.stack) machine.stack = sim::changed_alike(*point.stack, base, machine);
  return machine;
}

std::vector<StudyPoint> study_points(const config::Scenario& scenario, const sim::Machine& machine) {
  return study_points(scenario, machine, config::sweep_points(scenario));
}

std::vector<StudyPoint> study_points(const config::Scenario& scenario, const sim::Machine& machine,
                                     const std::vector<config::SweepPoint>& sweep) {
  std::vector<StudyPoint> points;
  std::map<std::string, std::size_t> workloads;
  std::map<std::string, sim::Stack> stacks;
  for (const config::SweepPoint& each : sweep) {
    StudyPoint point;
    point.choices = each.choices;
    const ModelShape whole = resolve_model(each.scenario);
    if (!same_stack(each.scenario, scenario)) point.stack = swept_stack(each.scenario, machine, stacks);
    const sim::Machine own = machine_of(point, machine, machine);
    point.whole = whole;
    point.model = resolve_part(each.scenario, whole, own);
    point.options = resolve_options(each.scenario, point.model, own);
    point.batch = resolve_batch(each.scenario.workload, point.model, point.options);
    point.choice = {whole.heads().num_key_value_heads, point.options.block_size};
    point.workload = workloads.try_emplace(workload_text(each.choices), workloads.size()).first->second;
    points.push_back(std::move(point));
  }
  return points;
}

std::string point_label(const StudyPoint& point) {
  std::string text;
  for (const auto& [key, value] : point.choices) {
    if (!text.empty()) text += ' ';
    text.append(axis_title(key)).append("=").append(value);
  }
  return text.empty() ? "step" : text;
}

}  // namespace dculab::study

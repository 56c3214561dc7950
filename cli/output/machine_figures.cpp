#include "cli/output/machine_figures.hpp"

#include "config/machine_file.hpp"
#include "config/yaml_text.hpp"
#include "study/calibrate/effective_machine.hpp"

namespace dculab::cli {
namespace {

constexpr std::size_t kMostShownValues = 12;

// The figures of a machine document: maps with `value`, `kind` and `source`, wherever they stand.
void add_figures(const Node& node, const std::string& path, std::vector<MachineFigure>& figures) {
  if (const Node* value = node.find("value")) {
    figures.push_back({path, value->text, node.find("kind")->text, node.find("source")->text});
    return;
  }
  if (node.kind == NodeKind::list && !node.children.empty() && node.children.front().children.empty()) {
    std::string ends;  // "1 .. 16", of a feature that the machine was calibrated on
    for (const Node& end : node.children) ends += (ends.empty() ? "" : " .. ") + end.text;
    figures.push_back({path, ends, "", ""});
    return;
  }
  const Node* level_name = node.find("name");
  for (const Node& child : node.children) {
    std::string key = child.key;
    if (node.kind == NodeKind::list) key = child.find("name")->text;
    if (child.kind == NodeKind::scalar && !(level_name && child.key == "name" && !path.empty()))
      figures.push_back({path.empty() ? key : path + "." + key, child.text, "", ""});
    else if (child.kind != NodeKind::scalar)
      add_figures(child, path.empty() ? key : path + "." + key, figures);
  }
}

// "1 TB/s, 2 TB/s" or "1 TB/s .. 4 TB/s": what an axis of a sweep goes through.
[[nodiscard]] std::string values_text(const config::SweepAxis& axis) {
  if (axis.draws && axis.draws->range)
    return number_text(*axis.draws->range, axis.draws->range->low) + " .. " +
           number_text(*axis.draws->range, axis.draws->range->high);
  if (axis.values.size() > kMostShownValues) return axis.values.front() + " .. " + axis.values.back();
  std::string text;
  for (const std::string& value : axis.values) text += (text.empty() ? "" : ", ") + value;
  return text;
}

void mark_swept(std::span<const config::SweepAxis> sweep, MachineFigure& figure) {
  for (const config::SweepAxis& axis : sweep)
    if (axis.key == "machine." + figure.key)
      figure = {figure.key, values_text(axis), "swept", "the scenario's sweep; without it: " + figure.source};
}

[[nodiscard]] Json peak_json(Dtype dtype, const char* unit, FlopsPerSecond rate) {
  return {{"dtype", name(dtype)}, {"unit", unit}, {"flop_per_second", rate.value()}};
}

}  // namespace

std::vector<MachineFigure> machine_figures(const sim::Machine& machine) {
  const sim::Machine effective = study::effective_machine(machine);
  std::vector<MachineFigure> figures;
  add_figures(config::parse_yaml(machine.name, config::machine_yaml(effective)), "", figures);
  for (const study::Absence& absence : study::absences(effective))
    figures.push_back({absence.key, absence.instead, "assumed", absence.why});
  return figures;
}

Json machine_facts(const sim::Machine& machine, std::span<const config::SweepAxis> sweep) {
  Json facts{{"memory", Json::array()}, {"peaks", Json::array()}, {"figures", Json::array()}};
  for (const sim::MemoryLevel& level : machine.memory)
    facts["memory"].push_back({{"level", level.name}, {"bytes_per_second", level.bandwidth.value()}});
  for (const auto& [dtype, peak] : machine.peaks) {
    facts["peaks"].push_back(peak_json(dtype, "vector", peak.vector));
    if (peak.matrix) facts["peaks"].push_back(peak_json(dtype, "matrix", *peak.matrix));
  }
  for (MachineFigure figure : machine_figures(machine)) {
    if (figure.kind.empty()) continue;
    mark_swept(sweep, figure);
    facts["figures"].push_back(
        {{"key", figure.key}, {"value", figure.value}, {"kind", figure.kind}, {"source", figure.source}});
  }
  return facts;
}

}  // namespace dculab::cli

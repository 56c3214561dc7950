#include "present/values/machine_figures.hpp"

#include <array>
#include <charconv>
#include <map>

#include "config/derivation.hpp"
#include "config/kernel_parameters.hpp"
#include "config/machine_file.hpp"
#include "config/unit_text.hpp"
#include "present/values/measure_text.hpp"
#include "present/values/verdict_text.hpp"
#include "sim/hardware/figure.hpp"
#include "study/calibrate/effective_machine.hpp"

namespace dculab::present {
namespace {

constexpr std::size_t kMostShownValues = 12;

// "; 256 FLOP per unit and clock"
[[nodiscard]] std::string followed_by(const Node& figure) {
  for (const config::DerivationField& field : config::kDerivations)
    if (const Node* rate = figure.find(field.key)) return "; " + rate->text + " " + std::string(field.words);
  return "";
}

// The figures of a machine document: maps with `value`, `kind` and `source`, wherever they stand.
void add_figures(const Node& node, const std::string& path, std::vector<MachineFigure>& figures) {
  if (const Node* value = node.find("value")) {
    figures.push_back({path, value->text, node.find("kind")->text, node.find("source")->text + followed_by(node)});
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
    if (axis.key == "machine." + figure.key || (axis.key == figure.key && axis.key.starts_with(sim::kOfStack)))
      figure = {figure.key, values_text(axis), "swept", "the scenario's sweep; without it: " + figure.source};
}

// "4 peaks, bandwidth of L1 and L2, latency of L1, L2 and DRAM"
[[nodiscard]] std::string grouped(const std::vector<std::string>& keys) {
  constexpr std::string_view kMemory = "memory.";
  std::map<std::string, std::vector<std::string>> levels;  // by figure
  std::size_t peaks = 0, rates = 0;
  for (const std::string& key : keys) {
    peaks += key.starts_with("peaks.") ? 1 : 0;
    rates += key.find("matmul_") < key.find('.') ? 1 : 0;
    const std::size_t last = key.rfind('.');
    if (key.starts_with(kMemory))
      levels[key.substr(last + 1)].push_back(key.substr(kMemory.size(), last - kMemory.size()));
  }
  std::vector<std::string> parts;
  if (peaks > 0) parts.push_back(counted(peaks, "peak"));
  if (rates > 0) parts.emplace_back("measured matmul rates");
  for (const char* figure : {"size", "channels", "bandwidth", "bandwidth_per_unit", "latency"})
    if (levels.contains(figure)) parts.push_back(std::string(figure) + " of " + listed(levels.at(figure)));
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text.empty() ? "nothing" : text;
}

// As a file has it.
[[nodiscard]] std::string exact_figure(const sim::Machine& machine, const std::string& key) {
  sim::Machine copy = machine;
  return std::visit(
      [](auto* figure) {
        if constexpr (requires { figure->value(); }) {
          return config::exact_text(*figure);
        } else {
          std::array<char, 64> buffer{};
          return std::string(buffer.data(), std::to_chars(buffer.begin(), buffer.end(), *figure).ptr);
        }
      },
      *sim::find_figure(copy, key));
}

void add_parameters(const sim::Stack& stack, std::vector<MachineFigure>& figures) {
  for (const auto& [key, parameter] : config::parameters_of(stack)) {
    const int value = stack.kernels.parameters[*parameter];
    if (value == parameter->standard) continue;
    figures.push_back({std::string(sim::kOfStack) + key, std::to_string(value), "chosen",
                       std::string(parameter->source) + "; " + std::to_string(parameter->standard) + " " +
                           std::string(parameter->unit) + " unless chosen"});
  }
}

// What a machine says of some stack; the one that runs there has what it takes of it.
[[nodiscard]] bool is_of_some_stack(const MachineFigure& figure) { return figure.key.starts_with("reached."); }

}  // namespace

std::vector<MachineFigure> machine_figures(const sim::Machine& machine) {
  sim::Machine effective = study::effective_machine(machine);
  for (auto& [key, derivation] : effective.derivations) derivation.is_stated = true;  // to have its value written
  std::vector<MachineFigure> figures;
  add_figures(config::machine_document(effective), "", figures);
  for (MachineFigure& figure : stack_figures(effective)) figures.push_back(std::move(figure));
  for (const study::Absence& absence : study::absences(effective))
    figures.push_back({absence.key, absence.instead, "assumed", absence.why});
  return figures;
}

std::vector<MachineFigure> stack_figures(const sim::Machine& machine) {
  constexpr std::string_view kColon = ": ";
  std::vector<MachineFigure> figures;
  for (const auto& [of_stack, source] : machine.stack.sources) {
    const std::string key = std::string(sim::kOfStack) + of_stack;
    if (!sim::figure_value(machine, key)) continue;
    const std::size_t colon = source.find(kColon);
    figures.push_back({key, exact_figure(machine, key), source.substr(0, colon), source.substr(colon + kColon.size())});
  }
  add_parameters(machine.stack, figures);
  return figures;
}

std::string stack_figures_text(const sim::Machine& machine) {
  std::string text;
  for (const MachineFigure& figure : stack_figures(machine))
    text += (text.empty() ? "" : ", ") + figure.key + " " + readable(figure.value) + " (" + figure.kind + ")";
  return text;
}

std::string figure_text(const sim::Machine& machine, const std::string& key, double value) {
  sim::Machine copy = machine;
  return std::visit(
      [value](auto* figure) {
        if constexpr (requires { figure->value(); })
          return config::short_text(std::remove_pointer_t<decltype(figure)>(value));
        else
          return std::is_same_v<decltype(figure), int*> ? exact_number(value) : number(value, 4);
      },
      *sim::find_figure(copy, key));
}

std::string redesign_text(const sim::Machine& machine) {
  if (!machine.redesign) return "";
  const sim::Redesign& redesign = *machine.redesign;
  return listed(redesign.set) + (redesign.set.size() == 1 ? " is" : " are") +
         " set by the scenario. Moved along: " + grouped(redesign.followed) +
         ". Where it was: " + grouped(redesign.stayed) + "; launches, links and shares of peaks";
}

MachineFacts machine_facts(const sim::Machine& machine, std::span<const config::SweepAxis> sweep) {
  MachineFacts facts;
  for (const sim::MemoryLevel& level : machine.memory) facts.memory.push_back({level.name, level.bandwidth});
  for (const auto& [dtype, peak] : machine.peaks) {
    facts.peaks.push_back({dtype, "vector", peak.vector});
    if (peak.matrix) facts.peaks.push_back({dtype, "matrix", *peak.matrix});
  }
  facts.figures = machine_figures(machine);
  std::erase_if(facts.figures, [](const MachineFigure& each) { return each.kind.empty() || is_of_some_stack(each); });
  for (MachineFigure& figure : facts.figures) mark_swept(sweep, figure);
  return facts;
}

}  // namespace dculab::present

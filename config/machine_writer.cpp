#include <stdexcept>

#include "config/derivation.hpp"
#include "config/machine_fields.hpp"
#include "config/machine_file.hpp"
#include "config/stack_fields.hpp"
#include "config/yaml_figure.hpp"
#include "core/activation_mode.hpp"
#include "sim/hardware/device_link.hpp"

namespace dculab::config {
namespace {

class MachineWriter {
 public:
  explicit MachineWriter(const sim::Machine& machine) : machine_(machine) {}

  std::string write() {
    const bool gpu = machine_.kind == lower::DeviceKind::gpu;
    text_ = "schema: " + std::string(kMachineSchema) + "\nname: " + yaml_quoted(machine_.name) +
            "\ndescription: " + yaml_quoted(machine_.description) + "\nkind: " + (gpu ? "gpu" : "cpu") + "\n";
    for (const auto& [word, vendor] : kVendors)
      if (vendor == machine_.vendor) text_ += "vendor: " + std::string(word) + "\n";
    if (!machine_.isa.empty()) text_ += "isa: " + yaml_quoted(machine_.isa) + "\n";
    if (!machine_.kernel_target.empty()) text_ += "kernel_target: " + yaml_quoted(machine_.kernel_target) + "\n";
    if (!machine_.compute_capability.empty())
      text_ += "compute_capability: " + yaml_quoted(machine_.compute_capability) + "\n";
    figure("", "", "compute_units", machine_.compute_units);
    figure("", "", "clock", machine_.clock);
    if (!machine_.clock_states.empty()) text_ += "clock_states:\n";
    for (const auto& [key, clock] : machine_.clock_states) figure("  ", "clock_states.", key, clock);
    write_peaks();
    write_matmuls("matmul_rates", machine_.matmul_rates);
    write_matmuls("matmul_dram_shares", machine_.matmul_dram_shares);
    write_matmuls("short_matmul_rates", machine_.short_matmul_rates);
    write_matmuls("short_matmul_dram_shares", machine_.short_matmul_dram_shares);
    write_memory();
    if (gpu) write_fields("waves", machine_.waves, kWaves);
    write_fields("overheads", machine_.overheads, kOverheads);
    write_fields("sustained", machine_.sustained, kSustained);
    write_reached();
    write_links();
    if (machine_.calibration) write_calibration(*machine_.calibration);
    return std::move(text_);
  }

 private:
  void write_links() {
    for (const sim::LinkField& field : sim::kLinks)
      std::visit(
          [&](auto member) {
            if (const auto& value = machine_.*member) figure("", "", std::string(field.key), *value);
          },
          field.member);
  }

  void write_reached() {
    const std::size_t begin = text_.size();
    for (const auto& of_stack : machine_.reached) {
      const std::string& stack = of_stack.first;
      const sim::Reached& reached = of_stack.second;
      const std::string path = "reached." + stack + ".";
      const std::size_t section = text_.size();
      for (const sim::ReachedField& field : sim::kReached)
        if (const std::string key(field.key); machine_.sources.contains(path + key))
          std::visit([&](auto member) { figure("    ", path, key, reached.*member); }, field.member);
      if (text_.size() > section) text_.insert(section, "  " + yaml_quoted(stack) + ":\n");
    }
    if (text_.size() > begin) text_.insert(begin, "reached:\n");
  }

  void write_peaks() {
    text_ += "peaks:\n";
    for (const auto& [dtype, peak] : machine_.peaks) {
      const std::string key(name(dtype));
      text_ += "  " + key + ":\n";
      figure("    ", "peaks." + key + ".", "vector", peak.vector);
      if (peak.matrix) figure("    ", "peaks." + key + ".", "matrix", *peak.matrix);
    }
  }

  template <class ByRows>
  void write_matmuls(const std::string& section, const std::map<sim::MatmulKernel, ByRows>& kernels) {
    if (!kernels.empty()) text_ += section + ":\n";
    for (const auto& [kernel, by_rows] : kernels) {
      const std::string key = sim::name(kernel);
      text_ += "  " + key + ":\n";
      for (const auto& [rows, value] : by_rows)
        figure("    ", section + "." + key + ".", "rows_" + std::to_string(rows), value);
    }
  }

  void write_memory() {
    text_ += "memory:\n";
    for (const sim::MemoryLevel& level : machine_.memory) {
      const std::string path = "memory." + level.name + ".";
      text_ += "  - name: " + yaml_quoted(level.name) +
               "\n    scope: " + (level.scope == sim::Scope::device ? "device" : "compute_unit") + "\n";
      for (const Field<sim::MemoryLevel>& field : kLevel)
        std::visit([&](auto member) { level_figure(path, field, level.*member); }, field.member);
    }
  }

  template <class T>
  void level_figure(const std::string& path, const Field<sim::MemoryLevel>& field, T value) {
    if (field.necessity == Necessity::required || value != T{}) figure("    ", path, std::string(field.key), value);
  }

  void write_calibration(const sim::Calibration& calibration) {
    text_ += "calibration:\n";
    if (!calibration.intervals.empty()) return write_intervals(calibration.intervals);
    text_ += "  held_out_steps: " + figure_text(calibration.held_out_steps) +
             "\n  coverage: " + figure_text(calibration.coverage) +
             "\n  interval_factor: " + figure_text(calibration.interval_factor) + "\n  domain:";
    if (calibration.domain.empty()) text_ += " {}";
    text_ += "\n";
    for (const auto& [feature, range] : calibration.domain)
      text_ += "    " + yaml_quoted(feature) + ": [" + figure_text(range.low) + ", " + figure_text(range.high) + "]\n";
    if (calibration.formats) write_formats(*calibration.formats);
  }

  void write_intervals(const std::map<std::string, sim::PointIntervals>& by_stack) {
    text_ += "  intervals:\n";
    for (const auto& [stack, intervals] : by_stack) {
      text_ += "    " + yaml_quoted(stack) + ": {rows: " + figure_text(intervals.rows);
      for (const auto& [name, kind] : sim::kPriceKinds)
        text_ += ", " + std::string(name) + ": " + figure_text(intervals.factors.at(kind));
      text_ += "}\n";
    }
  }

  void write_formats(const sim::SeenFormats& formats) {
    text_ += "  formats:\n";
    write_words("weights", formats.weights);
    write_words("activations", formats.activations);
    write_words("kv_cache_dtype", formats.kv_cache);
    write_words("kv_retention", formats.kv_retention);
  }

  template <class T>
  void write_words(const char* key, const std::set<T>& values) {
    std::string list;
    for (const T value : values) list += (list.empty() ? "" : ", ") + std::string(name(value));
    text_ += std::string("    ") + key + ": [" + list + "]\n";
  }

  template <class Part, std::size_t N>
  void write_fields(const std::string& section, const Part& part, const std::array<Field<Part>, N>& fields) {
    const std::size_t begin = text_.size();
    for (const Field<Part>& field : fields) {
      const std::string key(field.key);
      const bool is_default = field.necessity == Necessity::optional && !machine_.sources.contains(section + "." + key);
      if (!is_default) std::visit([&](auto member) { figure("  ", section + ".", key, part.*member); }, field.member);
    }
    if (text_.size() > begin) text_.insert(begin, section + ":\n");
  }

  template <class T>
  void figure(const std::string& indent, const std::string& path, const std::string& key, T value) {
    const auto source = machine_.sources.find(path + key);
    const std::size_t colon = source == machine_.sources.end() ? std::string::npos : source->second.find(": ");
    if (colon == std::string::npos)
      throw std::logic_error("machine " + machine_.name + ": no source for " + path + key + "; cite() it");
    const auto derivation = machine_.derivations.find(path + key);
    const bool follows = derivation != machine_.derivations.end();
    std::string what = follows ? derivation_yaml(machine_, path + key, derivation->second) : "";
    if (!follows || derivation->second.is_stated)
      what = "value: " + figure_text(value) + (what.empty() ? "" : ", ") + what;
    text_ += indent + key + ": {" + what + ", kind: " + source->second.substr(0, colon) +
             ", source: " + yaml_quoted(source->second.substr(colon + 2)) + "}\n";
  }

  const sim::Machine& machine_;
  std::string text_;
};

}  // namespace

std::string machine_yaml(const sim::Machine& machine) { return MachineWriter(machine).write(); }

}  // namespace dculab::config

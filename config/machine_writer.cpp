#include <stdexcept>

#include "config/derivation.hpp"
#include "config/machine_file.hpp"
#include "config/stack_keys.hpp"
#include "config/yaml_figure.hpp"
#include "core/activation_mode.hpp"
#include "sim/hardware/machine_fields.hpp"
#include "sim/hardware/stack_fields.hpp"

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
    write_stated("", "", machine_, sim::kDesign);
    if (!machine_.clock_states.empty()) text_ += "clock_states:\n";
    for (const auto& [key, clock] : machine_.clock_states) figure("  ", "clock_states.", key, clock);
    write_peaks();
    write_matmuls(sim::kMatmulRates, machine_.matmul_rates);
    write_matmuls(sim::kMatmulShares, machine_.matmul_dram_shares);
    write_matmuls(sim::kShortMatmulRates, machine_.short_matmul_rates);
    write_matmuls(sim::kShortMatmulShares, machine_.short_matmul_dram_shares);
    write_memory();
    if (gpu) write_fields("waves", machine_.waves, sim::kWaves);
    write_fields("overheads", machine_.overheads, sim::kOverheads);
    write_fields("sustained", machine_.sustained, sim::kSustained);
    write_reached();
    write_stated("", "", machine_, sim::kLinks);
    if (machine_.calibration) write_calibration(*machine_.calibration);
    return std::move(text_);
  }

 private:
  // All but those that an optional does not have.
  template <class Part, std::size_t N>
  void write_stated(const std::string& indent, const std::string& path, const Part& part,
                    const std::array<sim::FigureField<Part>, N>& fields) {
    for (const sim::FigureField<Part>& field : fields)
      sim::visit_figure(part, field,
                        [&](const auto& value) { figure(indent, path, std::string(field.info.key), value); });
  }

  void write_reached() {
    const std::size_t begin = text_.size();
    for (const auto& of_stack : machine_.reached) {
      const std::string& stack = of_stack.first;
      const sim::Reached& reached = of_stack.second;
      const std::string path = "reached." + stack + ".";
      const std::size_t section = text_.size();
      for (const sim::FigureField<sim::Reached>& field : sim::kReached)
        if (const std::string key(field.info.key); machine_.sources.contains(path + key))
          sim::visit_figure(reached, field, [&](const auto& value) { figure("    ", path, key, value); });
      if (text_.size() > section) text_.insert(section, "  " + yaml_quoted(stack) + ":\n");
    }
    if (text_.size() > begin) text_.insert(begin, "reached:\n");
  }

  void write_peaks() {
    text_ += "peaks:\n";
    for (const auto& [dtype, peak] : machine_.peaks) {
      const std::string key(name(dtype));
      text_ += "  " + key + ":\n";
      write_stated("    ", "peaks." + key + ".", peak, sim::kPeak);
    }
  }

  template <class ByRows>
  void write_matmuls(const sim::FigureInfo& info, const std::map<sim::MatmulKernel, ByRows>& kernels) {
    const std::string section(info.key);
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
      for (const sim::FigureField<sim::MemoryLevel>& field : sim::kLevel)
        sim::visit_figure(level, field, [&](const auto& value) {
          if (field.info.is_required() || sim::number_of(value) != 0)
            figure("    ", path, std::string(field.info.key), value);
        });
    }
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
  void write_fields(const std::string& section, const Part& part, const std::array<sim::FigureField<Part>, N>& fields) {
    const std::size_t begin = text_.size();
    for (const sim::FigureField<Part>& field : fields) {
      const std::string key(field.info.key);
      const bool is_default = !field.info.is_required() && !machine_.sources.contains(section + "." + key);
      if (!is_default)
        sim::visit_figure(part, field, [&](const auto& value) { figure("  ", section + ".", key, value); });
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

  template <class T>
  void figure(const std::string& indent, const std::string& path, const std::string& key,
              const std::optional<T>& value) {
    if (value) figure(indent, path, key, *value);
  }

  const sim::Machine& machine_;
  std::string text_;
};

}  // namespace

std::string machine_yaml(const sim::Machine& machine) { return MachineWriter(machine).write(); }

}  // namespace dculab::config

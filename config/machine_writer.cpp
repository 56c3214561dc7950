#include <stdexcept>

#include "config/derivation.hpp"
#include "config/machine_file.hpp"
#include "config/stack_keys.hpp"
#include "config/yaml_writer.hpp"
#include "core/activation_mode.hpp"
#include "sim/hardware/machine_fields.hpp"
#include "sim/hardware/stack_fields.hpp"

namespace dculab::config {
namespace {

class MachineWriter {
 public:
  explicit MachineWriter(const sim::Machine& machine) : machine_(machine) {}

  [[nodiscard]] Node write() const {
    const bool gpu = machine_.kind == lower::DeviceKind::gpu;
    Node document = map_node();
    add_names(document, gpu ? "gpu" : "cpu");
    add_stated(document, "", machine_, sim::kDesign);
    Node clocks = map_node();
    for (const auto& [key, clock] : machine_.clock_states) add_figure(clocks, "clock_states.", key, clock);
    add_if_any(document, "clock_states", std::move(clocks));
    add(document, "peaks", peaks());
    add_matmuls(document, sim::kMatmulRates, machine_.matmul_rates);
    add_matmuls(document, sim::kMatmulShares, machine_.matmul_dram_shares);
    add_matmuls(document, sim::kShortMatmulRates, machine_.short_matmul_rates);
    add_matmuls(document, sim::kShortMatmulShares, machine_.short_matmul_dram_shares);
    add(document, "memory", memory());
    if (gpu) add_cited(document, "waves", "waves.", machine_.waves, sim::kWaves);
    add_cited(document, "overheads", "overheads.", machine_.overheads, sim::kOverheads);
    add_cited(document, "sustained", "sustained.", machine_.sustained, sim::kSustained);
    Node reached = map_node();
    for (const auto& [stack, figures] : machine_.reached)
      add_cited(reached, stack, "reached." + stack + ".", figures, sim::kReached);
    add_if_any(document, "reached", std::move(reached));
    add_stated(document, "", machine_, sim::kLinks);
    add_cited(document, "power", "power.", machine_.power, sim::kPower);
    add_stated(document, "", machine_, sim::kPrice);
    if (machine_.calibration) add(document, "calibration", calibration(*machine_.calibration));
    return document;
  }

 private:
  void add_names(Node& document, std::string_view kind) const {
    add(document, "schema", word_node(kMachineSchema));
    add(document, "name", text_node(machine_.name));
    add(document, "description", text_node(machine_.description));
    add(document, "kind", word_node(kind));
    for (const auto& [word, vendor] : kVendors)
      if (vendor == machine_.vendor) add(document, "vendor", word_node(word));
    for (const auto& [key, name] :
         {std::pair("isa", &machine_.isa), std::pair("kernel_target", &machine_.kernel_target),
          std::pair("compute_capability", &machine_.compute_capability)})
      if (!name->empty()) add(document, key, text_node(*name));
  }

  // All but those that an optional does not have.
  template <class Part, std::size_t N>
  void add_stated(Node& map, const std::string& path, const Part& part,
                  const std::array<sim::FigureField<Part>, N>& fields) const {
    for (const sim::FigureField<Part>& field : fields)
      sim::visit_figure(part, field,
                        [&](const auto& value) { add_figure(map, path, std::string(field.info.key), value); });
  }

  // Those that are required or have a source; the others are defaults.
  template <class Part, std::size_t N>
  void add_cited(Node& map, std::string_view section, const std::string& path, const Part& part,
                 const std::array<sim::FigureField<Part>, N>& fields) const {
    Node figures = map_node();
    for (const sim::FigureField<Part>& field : fields)
      if (const std::string key(field.info.key); field.info.is_required() || machine_.sources.contains(path + key))
        sim::visit_figure(part, field, [&](const auto& value) { add_figure(figures, path, key, value); });
    add_if_any(map, section, std::move(figures));
  }

  [[nodiscard]] Node peaks() const {
    Node by_dtype = map_node();
    for (const auto& [dtype, peak] : machine_.peaks) {
      const std::string key(name(dtype));
      Node figures = map_node();
      add_stated(figures, "peaks." + key + ".", peak, sim::kPeak);
      add(by_dtype, key, std::move(figures));
    }
    return by_dtype;
  }

  template <class ByRows>
  void add_matmuls(Node& document, const sim::FigureInfo& info,
                   const std::map<sim::MatmulKernel, ByRows>& kernels) const {
    const std::string section(info.key);
    Node by_kernel = map_node();
    for (const auto& [kernel, by_rows] : kernels) {
      const std::string key = sim::name(kernel);
      Node figures = map_node();
      for (const auto& [rows, value] : by_rows)
        add_figure(figures, section + "." + key + ".", "rows_" + std::to_string(rows), value);
      add(by_kernel, key, std::move(figures));
    }
    add_if_any(document, section, std::move(by_kernel));
  }

  [[nodiscard]] Node memory() const {
    Node levels = list_node();
    for (const sim::MemoryLevel& level : machine_.memory) {
      Node figures = map_node();
      add(figures, "name", text_node(level.name));
      add(figures, "scope", word_node(level.scope == sim::Scope::device ? "device" : "compute_unit"));
      for (const sim::FigureField<sim::MemoryLevel>& field : sim::kLevel)
        sim::visit_figure(level, field, [&](const auto& value) {
          if (field.info.is_required() || sim::number_of(value) != 0)
            add_figure(figures, "memory." + level.name + ".", std::string(field.info.key), value);
        });
      levels.children.push_back(std::move(figures));
    }
    return levels;
  }

  [[nodiscard]] static Node calibration(const sim::Calibration& calibration) {
    Node map = map_node();
    if (!calibration.intervals.empty()) {
      add(map, "intervals", intervals(calibration.intervals));
    } else {
      add(map, "held_out_steps", word_node(figure_text(calibration.held_out_steps)));
      add(map, "coverage", word_node(figure_text(calibration.coverage)));
      add(map, "interval_factor", word_node(figure_text(calibration.interval_factor)));
    }
    if (!calibration.domain.empty() || calibration.intervals.empty()) add(map, "domain", domain(calibration.domain));
    if (calibration.formats) add(map, "formats", formats(*calibration.formats));
    return map;
  }

  [[nodiscard]] static Node domain(const std::map<std::string, sim::Range>& features) {
    Node map = map_node();
    for (const auto& [feature, range] : features) {
      Node ends = list_node();
      ends.children = {word_node(figure_text(range.low)), word_node(figure_text(range.high))};
      add(map, feature, std::move(ends));
    }
    return map;
  }

  [[nodiscard]] static Node intervals(const std::map<std::string, sim::PointIntervals>& by_stack) {
    Node map = map_node();
    for (const auto& [stack, intervals] : by_stack) {
      Node factors = map_node();
      add(factors, "rows", word_node(figure_text(intervals.rows)));
      for (const auto& [name, kind] : sim::kPriceKinds)
        add(factors, name, word_node(figure_text(intervals.factors.at(kind))));
      add(map, stack, std::move(factors));
    }
    return map;
  }

  [[nodiscard]] static Node formats(const sim::SeenFormats& formats) {
    Node map = map_node();
    add(map, "weights", words(formats.weights));
    add(map, "activations", words(formats.activations));
    add(map, "kv_cache_dtype", words(formats.kv_cache));
    add(map, "kv_retention", words(formats.kv_retention));
    return map;
  }

  template <class T>
  [[nodiscard]] static Node words(const std::set<T>& values) {
    Node list = list_node();
    for (const T value : values) list.children.push_back(word_node(name(value)));
    return list;
  }

  template <class T>
  void add_figure(Node& map, const std::string& path, const std::string& key, T value) const {
    const auto source = machine_.sources.find(path + key);
    const std::size_t colon = source == machine_.sources.end() ? std::string::npos : source->second.find(": ");
    if (colon == std::string::npos)
      throw std::logic_error("machine " + machine_.name + ": no source for " + path + key + "; cite() it");
    const auto derivation = machine_.derivations.find(path + key);
    const bool follows = derivation != machine_.derivations.end();
    Node figure = map_node();
    if (!follows || derivation->second.is_stated) add(figure, "value", word_node(figure_text(value)));
    if (follows) add_derivation(figure, machine_, path + key, derivation->second);
    add(figure, "kind", word_node(std::string_view(source->second).substr(0, colon)));
    add(figure, "source", text_node(std::string_view(source->second).substr(colon + 2)));
    add(map, key, std::move(figure));
  }

  template <class T>
  void add_figure(Node& map, const std::string& path, const std::string& key, const std::optional<T>& value) const {
    if (value) add_figure(map, path, key, *value);
  }

  const sim::Machine& machine_;
};

}  // namespace

Node machine_document(const sim::Machine& machine) { return MachineWriter(machine).write(); }
std::string machine_yaml(const sim::Machine& machine) { return yaml_of(machine_document(machine)); }

}  // namespace dculab::config

#include "config/machine_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "config/calibration_reader.hpp"
#include "config/derivation.hpp"
#include "config/file_kind.hpp"
#include "config/machine_keys.hpp"
#include "config/map_reader.hpp"
#include "config/yaml_text.hpp"
#include "sim/hardware/figure.hpp"
#include "sim/hardware/machine_fields.hpp"
#include "sim/hardware/stack_fields.hpp"

namespace dculab::config {
namespace {

// "9.0", "10.0"
bool is_compute_capability(std::string_view text) {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  const std::size_t dot = text.find('.');
  return dot != std::string_view::npos && dot >= 1 && dot <= 2 && text.size() == dot + 2 &&
         std::ranges::all_of(text.substr(0, dot), is_digit) && is_digit(text.back());
}

// "rows_16" -> 16
std::optional<int> parse_rows(std::string_view key) {
  constexpr std::string_view kPrefix = "rows_";
  if (!key.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = key.substr(kPrefix.size());
  int rows = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rows);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && rows >= 1 && rows <= sim::kLargestFigureCount && std::to_string(rows) == digits ? std::optional(rows)
                                                                                                  : std::nullopt;
}

// "boost", "power_cap_250w"
bool is_state_name(std::string_view key) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_0123456789";
  return !key.empty() && key.front() >= 'a' && key.front() <= 'z' && key.find_first_not_of(kLetters) == key.npos;
}

class MachineReader {
 public:
  MachineReader(const Node& document, ProblemList& problems) : document_(document), problems_(problems) {}

  sim::Machine read() {
    MapReader reader(&document_, "", problems_);
    read_identity(reader);
    read_figures(reader, machine_, sim::kDesign);
    read_clock_states(reader.optional_map("clock_states"));
    read_peaks(reader.required_map("peaks"));
    const auto half = machine_.peaks.find(Dtype::f16);
    machine_.has_matrix_cores = half != machine_.peaks.end() && half->second.matrix.has_value();
    read_matmuls(reader, sim::kMatmulRates, machine_.matmul_rates);
    read_matmuls(reader, sim::kMatmulShares, machine_.matmul_dram_shares);
    read_matmuls(reader, sim::kShortMatmulRates, machine_.short_matmul_rates);
    read_matmuls(reader, sim::kShortMatmulShares, machine_.short_matmul_dram_shares);
    if (const Node* levels = reader.required("memory")) read_memory(*levels);
    const bool gpu = machine_.kind == lower::DeviceKind::gpu;
    if (gpu) read_fields(reader.required_map("waves"), machine_.waves, sim::kWaves);
    read_fields(reader.required_map("overheads"), machine_.overheads, sim::kOverheads);
    read_fields(reader.optional_map("sustained"), machine_.sustained, sim::kSustained);
    read_reached(reader.optional_map("reached"));
    refuse_old_section(reader);
    read_figures(reader, machine_, sim::kLinks);
    read_fields(reader.optional_map("power"), machine_.power, sim::kPower);
    read_figures(reader, machine_, sim::kPrice);
    if (reader.optional("calibration") != nullptr)
      read_calibration(reader.optional_map("calibration"), machine_.calibration.emplace());
    reader.finish();
    machine_.stack = sim::stack_on(machine_, {});
    return std::move(machine_);
  }

 private:
  void read_identity(MapReader& reader) {
    read_keys<MachineKeys>(reader, machine_);
    if (const Node* node = reader.optional("compute_capability");
        node != nullptr && !is_compute_capability(machine_.compute_capability))
      reader.complain(*node, "compute_capability: must be major.minor, such as 9.0");
  }

  void read_clock_states(MapReader states) {
    if (!states.is_present()) return;
    for (const Node& child : states.node()->children) {
      if (child.key == kDefaultClock || !is_state_name(child.key))
        states.complain(child, states.path_to(child.key) + ": must be a word of small letters, digits and _, not " +
                                   std::string(kDefaultClock));
      figure(states, child.key, sim::kClockState, machine_.clock_states[child.key]);
    }
    states.finish();
  }

  void read_peaks(MapReader peaks) {
    if (!peaks.is_present()) return;
    for (const Node& child : peaks.node()->children) {
      const std::optional<Dtype> dtype = parse_dtype(child.key);
      if (!dtype || name(*dtype) != child.key) continue;  // finish() reports it
      MapReader peak = peaks.required_map(child.key);
      read_figures(peak, machine_.peaks[*dtype], sim::kPeak);
      peak.finish();
    }
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::int8, Dtype::fp8_e4m3, Dtype::fp8_e5m2})
      static_cast<void>(peaks.optional(name(dtype)));
    peaks.finish();
  }

  // int4_int8: {rows_1: {value: 90 GFLOP/s, ...}, rows_8: ...}
  template <class ByRows>
  void read_matmuls(MapReader& reader, const sim::FigureInfo& info, std::map<sim::MatmulKernel, ByRows>& result) {
    MapReader kernels = reader.optional_map(info.key);
    if (!kernels.is_present()) return;
    for (const Node& child : kernels.node()->children) {
      const std::optional<sim::MatmulKernel> kernel = sim::parse_matmul_kernel(child.key);
      if (!kernel) continue;  // finish() reports it
      MapReader by_rows = kernels.required_map(child.key);
      if (!by_rows.is_present()) continue;
      for (const Node& each : by_rows.node()->children)
        if (const std::optional<int> rows = parse_rows(each.key))
          figure(by_rows, each.key, info, result[*kernel][*rows]);
      for (const char* known : {"rows_1", "rows_8"}) static_cast<void>(by_rows.optional(known));
      by_rows.finish();
    }
    for (const char* known : {"f16_exact", "int8_int8", "int4_int8"}) static_cast<void>(kernels.optional(known));
    kernels.finish();
  }

  void read_memory(const Node& levels) {
    if (levels.kind != NodeKind::list || levels.children.empty())
      return problems_.add(levels, "memory: must be a list of levels, fastest first, DRAM last");
    for (const Node& child : levels.children) {
      const Node* name = child.find("name");
      MapReader reader(&child, "memory." + (name == nullptr ? std::string("?") : name->text), problems_);
      read_level(reader);
    }
  }

  void read_level(MapReader& reader) {
    if (!reader.is_present()) return;
    sim::MemoryLevel named;
    read_key<LevelKeys>(reader, "name", named);
    const std::string& name = named.name;
    for (const sim::MemoryLevel& other : machine_.memory)
      if (other.name == name) reader.complain(*reader.node(), "memory." + name + ": stands twice");
    sim::MemoryLevel& level = machine_.memory.emplace_back();  // what a figure follows is looked up there
    level.name = name;
    read_key<LevelKeys>(reader, "scope", level);
    read_fields(reader, level, sim::kLevel);
  }

  // By stack or program, or of whatever runs there: "all: {matmul_compute: {value: 0.66, ...}}"
  void read_reached(MapReader stacks) {
    if (!stacks.is_present()) return;
    for (const Node& child : stacks.node()->children) {
      if (sim::find_figure_info("reached.all." + child.key) != nullptr) {
        static_cast<void>(stacks.optional(child.key));
        stacks.complain(child, stacks.path_to(child.key) + ": whose kernels reach it? Write reached.all." + child.key +
                                   ", or a stack's or a program's name in the place of all");
        continue;
      }
      MapReader figures = stacks.required_map(child.key);
      read_figures(figures, machine_.reached[child.key], sim::kReached);
      figures.finish();
    }
    stacks.finish();
  }

  static void refuse_old_section(MapReader& reader) {
    if (reader.node() == nullptr || reader.node()->find("efficiencies") == nullptr) return;
    reader.complain(*reader.optional("efficiencies"),
                    "efficiencies: dram_bandwidth, cache_bandwidth and refill_bandwidth stand under sustained now, all "
                    "others under reached.all, or reached.dculab where they were fitted to our own kernels");
  }

  template <class Part, std::size_t N>
  void read_fields(MapReader reader, Part& part, const std::array<sim::FigureField<Part>, N>& fields) {
    read_figures(reader, part, fields);
    reader.finish();
  }

  template <class Part, std::size_t N>
  void read_figures(MapReader& reader, Part& part, const std::array<sim::FigureField<Part>, N>& fields) {
    for (const sim::FigureField<Part>& field : fields)
      sim::visit_figure(part, field, [&](auto& target) { figure(reader, field.info.key, field.info, target); });
  }

  template <class T>
  void figure(MapReader& reader, std::string_view key, const sim::FigureInfo& info, T& target) {
    const Node* node = info.is_required() ? reader.required(key) : reader.optional(key);
    if (node == nullptr) return;
    if constexpr (requires { target.emplace(); })
      read_figure(*node, reader.path_to(key), info.bounds, target.emplace());
    else
      read_figure(*node, reader.path_to(key), info.bounds, target);
  }

  // {value: 1024 GB/s, kind: spec, source: "..."}
  template <class T>
  void read_figure(const Node& node, const std::string& path, Bounds bounds, T& target) {
    if (node.kind != NodeKind::map)
      return problems_.add(node,
                           path + ": must be {value: ..., kind: spec | measured | inferred | assumed, source: ...}");
    MapReader reader(&node, path, problems_);
    sim::Evidence evidence = sim::Evidence::assumed;
    std::string source;
    read_value(reader, path, bounds, target);
    reader.required("kind", evidence, kEvidence);
    reader.required("source", source);
    reader.finish();
    cite(machine_, path, evidence, source);
  }

  template <class T>
  void read_value(MapReader& reader, const std::string& path, Bounds bounds, T& target) {
    if constexpr (requires { target.value(); })
      if (may_follow(machine_, path)) return read_followed(reader, machine_, path, target, bounds);
    reader.required("value", target, bounds);
  }

  const Node& document_;
  ProblemList& problems_;
  sim::Machine machine_;
};

sim::Machine read_document(const std::string& file, const Node& document) {
  require_kind(file, document, kMachineSchema);
  ProblemList problems(file);
  sim::Machine machine = MachineReader(document, problems).read();
  problems.throw_if_any();
  for (const std::string& problem : sim::problems(machine)) problems.add(document, problem);
  problems.throw_if_any();
  return machine;
}

}  // namespace

sim::Machine read_machine_file(const std::string& path) { return read_document(path, read_yaml_file(path)); }

sim::Machine read_machine(const std::string& file, const std::string& yaml) {
  return read_document(file, parse_yaml(file, yaml));
}

void cite(sim::Machine& machine, const std::string& figure, sim::Evidence evidence, const std::string& source) {
  constexpr std::string_view kReachedBegin = "stack.reached.";
  std::string text;
  for (const auto& [word, value] : kEvidence)
    if (value == evidence) text = std::string(word) + ": " + source;
  std::string key = figure;
  if (figure.starts_with(kReachedBegin)) key = sim::keep_reached(machine, figure.substr(kReachedBegin.size()), text);
  machine.sources[key] = text;
  std::erase(machine.assumed, key);
  if (is_uncertain(evidence)) machine.assumed.push_back(key);
}

}  // namespace dculab::config

// Every figure of a machine that a price may use, and where it came from.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "config/sweep_axis.hpp"
#include "core/dtype.hpp"
#include "present/output/field_json.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::present {

// A value of the machine's file, or what is used in its place; `kind` and `source` are empty for names and the like.
struct MachineFigure {
  std::string key;  // "memory.L2.bandwidth"
  std::string value;
  std::string kind;  // "spec", "measured", "inferred", "assumed" or, in machine_facts, "swept"
  std::string source;
};

// A figure's source ends with what it follows.
[[nodiscard]] std::vector<MachineFigure> machine_figures(const sim::Machine& machine);

// Of the stack that runs there, all that is not a prior or another default: "stack.reached.matmul_compute",
// "stack.kernels_per_op"; and parameters of its kernels that are not the program's own, of kind "chosen".
[[nodiscard]] std::vector<MachineFigure> stack_figures(const sim::Machine& machine);

// "stack.kernels_per_op 2 (assumed), stack.reached.matmul_compute 0.66 (measured)"; "" where there is none.
[[nodiscard]] std::string stack_figures_text(const sim::Machine& machine);

// A value of the figure under `key`, in the unit that suits it. Precondition: the machine has such a figure.
[[nodiscard]] std::string figure_text(const sim::Machine& machine, const std::string& key, double value);

// What a scenario's figures took along, and what they left where it was: "compute_units set; with it moved 4 peaks,
// ...".
// "" where the scenario sets none.
[[nodiscard]] std::string redesign_text(const sim::Machine& machine);

// For the charts of a report.
struct MachineFacts {
  struct Level {
    std::string name;
    BytesPerSecond bandwidth;
  };
  struct Peak {
    Dtype dtype = Dtype::f16;
    std::string_view unit;  // "vector" or "matrix"
    FlopsPerSecond rate;
  };
  std::vector<Level> memory;
  std::vector<Peak> peaks;
  std::vector<MachineFigure> figures;  // that have a kind
};

// A value for each machine, by its name.
template <class T>
using ByMachine = std::vector<std::pair<std::string, T>>;

// In place of what the machine had, if anything.
template <class T>
void set_of_machine(ByMachine<T>& values, const std::string& machine, T value) {
  for (auto& [name, known] : values)
    if (name == machine) {
      known = std::move(value);
      return;
    }
  values.emplace_back(machine, std::move(value));
}

// A figure that `sweep` changes has its values there, and the kind "swept".
[[nodiscard]] MachineFacts machine_facts(const sim::Machine& machine, std::span<const config::SweepAxis> sweep = {});

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::MachineFigure> {
  using Figure = present::MachineFigure;
  static constexpr std::string_view id = "figure";
  static constexpr std::string_view doc = "A figure of a machine or a stack, and where it came from.";
  static constexpr auto fields = std::tuple(
      field("key", "as scenarios set it: memory.L2.bandwidth, stack.reached.matmul_compute", &Figure::key),
      field("value", "with its unit", &Figure::value),
      field("kind",
            "spec, measured, inferred, fitted, assumed, swept, chosen ...; empty where it is a name or the like",
            &Figure::kind),
      field("source", "where it came from", &Figure::source));
};

template <>
struct FieldList<present::MachineFacts::Level> {
  using Level = present::MachineFacts::Level;
  static constexpr std::string_view id = "machine_level";
  static constexpr std::string_view doc = "A memory level of a machine.";
  static constexpr auto fields = std::tuple(field("level", "its name", &Level::name),
                                            field("bytes_per_second", "peak bandwidth", &Level::bandwidth));
};

template <>
struct FieldList<present::MachineFacts::Peak> {
  using Peak = present::MachineFacts::Peak;
  static constexpr std::string_view id = "machine_peak";
  static constexpr std::string_view doc = "Peak arithmetic of a machine in one format.";
  static constexpr auto fields =
      std::tuple(field("dtype", "format", names_up_to<Dtype::fp4>(), [](const Peak& peak) { return name(peak.dtype); }),
                 field("unit", "of which instructions", one_of("vector", "matrix"), &Peak::unit),
                 field("flop_per_second", "peak rate", &Peak::rate));
};

template <>
struct FieldList<present::MachineFacts> {
  using Facts = present::MachineFacts;
  static constexpr std::string_view id = "machine_facts";
  static constexpr std::string_view doc = "The figures of a machine that predicted times follow from.";
  static constexpr auto fields =
      std::tuple(field("memory", "levels, the nearest first", &Facts::memory),
                 field("peaks", "by format", &Facts::peaks), field("figures", "with their sources", &Facts::figures));
};

template <>
struct FieldList<sim::Redesign> {
  static constexpr std::string_view id = "redesign";
  static constexpr std::string_view doc = "What figures that a scenario sets moved along.";
  static constexpr auto fields = std::tuple(
      field("set", "keys that the scenario sets", &sim::Redesign::set),
      field("followed", "keys of figures that follow those", &sim::Redesign::followed),
      field("stayed", "keys of peaks and memory figures that stayed where they were", &sim::Redesign::stayed));
};

}  // namespace dculab

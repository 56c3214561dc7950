// Every figure of a machine that a price may use, and where it came from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/sweep_axis.hpp"
#include "present/output/report.hpp"
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

// `key`, `value`, `kind`, `source` of each.
[[nodiscard]] Json figures_json(const std::vector<MachineFigure>& figures);

// A value of the figure under `key`, in the unit that suits it. Precondition: the machine has such a figure.
[[nodiscard]] std::string figure_text(const sim::Machine& machine, const std::string& key, double value);

// What a scenario's figures took along, and what they left where it was: "compute_units set; with it moved 4 peaks,
// ...".
// "" where the scenario sets none.
[[nodiscard]] std::string redesign_text(const sim::Machine& machine);
[[nodiscard]] Json redesign_json(const sim::Machine& machine);

// For the charts of a report: `memory[]` (`level`, `bytes_per_second`), `peaks[]` (`dtype`, `unit`, `flop_per_second`),
// `figures[]` (`key`, `value`, `kind`, `source`). A figure that `sweep` changes has its values there, and the kind
// "swept".
[[nodiscard]] Json machine_facts(const sim::Machine& machine, std::span<const config::SweepAxis> sweep = {});

}  // namespace dculab::present

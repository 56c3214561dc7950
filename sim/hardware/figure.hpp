// A figure of a machine by its key in the machine file, "peaks.f16.matrix", "memory.L2.latency", "compute_units", or of
// the stack that runs there by its key in the stack file: "stack.reached.matmul_compute", "stack.host.per_step".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/hardware/figure_field.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

using Figure = std::variant<int*, double*, Bytes*, Seconds*, Hertz*, BytesPerSecond*, FlopsPerSecond*, Watts*>;

// How keys of the stack begin.
inline constexpr std::string_view kOfStack = "stack.";

// Nothing for a key that is no figure, and for one that the machine does not state and nothing stands in for.
[[nodiscard]] std::optional<Figure> find_figure(Machine& machine, std::string_view key);

// The figure under "power." or "price_per_hour", which begins at 0 where the machine states none. False for any other
// key.
bool begin_cost(Machine& machine, std::string_view key);

// What is known of the figure under `key`, of any machine; null for a key that is no figure.
[[nodiscard]] const FigureInfo* find_figure_info(std::string_view key);

// The figure in core units.
[[nodiscard]] std::optional<double> figure_value(const Machine& machine, std::string_view key);

// "measured: a run"; null where no source states it, so that it is a prior or another default.
[[nodiscard]] const std::string* source_of(const Machine& machine, std::string_view key);

// Keys of everything that is a figure of a stack, stated or not: "stack.kernels_per_op".
[[nodiscard]] const std::vector<std::string>& stack_figures();

// `stack` with what changed from the stack of `before` to that of `after`: in the same measure, and to the same value
// where it was the same. For an answer about several stacks whose machine is changed.
[[nodiscard]] Stack changed_alike(Stack stack, const Machine& before, const Machine& after);

}  // namespace dculab::sim

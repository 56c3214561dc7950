// A figure of a machine by its key in the machine file: "peaks.f16.matrix", "memory.L2.latency", "compute_units".
#pragma once

#include <optional>
#include <string_view>
#include <variant>

#include "sim/hardware/machine.hpp"

namespace dculab::sim {

using Figure = std::variant<int*, double*, Bytes*, Seconds*, Hertz*, BytesPerSecond*, FlopsPerSecond*>;

// Nothing for a key that is no figure, and for one that the machine does not state and nothing stands in for.
[[nodiscard]] std::optional<Figure> find_figure(Machine& machine, std::string_view key);

// The figure in core units.
[[nodiscard]] std::optional<double> figure_value(const Machine& machine, std::string_view key);

}  // namespace dculab::sim

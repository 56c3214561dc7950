// A figure that a scenario gives another value: "2 TB/s", or relative to its own, "1.2 x".
#pragma once

#include <string>

#include "config/map_reader.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::config {

[[nodiscard]] bool is_relative(const Node& change);

// `key` is the simulator's (sim/hardware/figure.hpp); messages name `change` by the reader's path. What follows a
// figure that is scaled has followed it then. Precondition: the machine has the figure.
void change_figure(sim::Machine& machine, const std::string& key, MapReader& reader, const Node& change);

}  // namespace dculab::config

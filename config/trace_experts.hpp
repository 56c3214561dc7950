// A mixture of experts in a trace, and what a device of several has of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "config/map_reader.hpp"
#include "model/layer_kind.hpp"

namespace dculab::config {

inline constexpr int kMostSharingDevices = 1 << 16;  // that share a model

[[nodiscard]] Experts read_trace_experts(MapReader reader);
[[nodiscard]] nlohmann::ordered_json trace_experts_json(const Experts& experts);

}  // namespace dculab::config

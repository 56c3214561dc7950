// The model of a step in a trace: its sizes, and its kinds of layers.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "config/map_reader.hpp"
#include "model/model_shape.hpp"

namespace dculab::config {

enum class TraceSchema {
  one_kind,     // dculab/trace/1: all layers are alike, and what they are made of stands beside the model's sizes
  layer_kinds,  // dculab/trace/2
};

void read_trace_model(MapReader reader, TraceSchema schema, ModelShape& model);

[[nodiscard]] nlohmann::ordered_json trace_model_json(const ModelShape& model);

}  // namespace dculab::config

// The teaching tables of a model: what the ops of a layer compute and move, and what weights and KV cache take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/dtype.hpp"
#include "model/model_shape.hpp"
#include "sim/tables/footprint.hpp"
#include "sim/tables/intensity.hpp"

namespace dculab::study {

struct TableModel {
  std::string name;      // a folder with config.json, or a name under scenarios/models
  int kv_heads = 0;      // in the place of its own; 0: its own
  bool lecture = false;  // with MHA and a plain MLP of width 4D (sim/tables/lecture.hpp)
};

struct IntensityQuestion {
  TableModel model;
  int layer = 0;
  Phase phase = Phase::prefill;
  bool both_phases = false;  // prefill, then decode
  int tokens = 2048;         // prompt length, or tokens cached so far
  int batch = 1;
  Dtype dtype = Dtype::f16;             // of weights, activations and KV
  std::vector<std::string> machines{};  // whose ridge points are asked for: names or files
};

// From which arithmetic intensity on a machine's arithmetic is the limit, not its memory: a corner of its roofline.
struct RidgePoint {
  std::string machine;
  Dtype dtype = Dtype::f16;  // that it multiplies
  FlopsPerSecond peak;
  BytesPerSecond bandwidth;  // of DRAM

  [[nodiscard]] FlopsPerByte intensity() const { return peak / bandwidth; }
};

struct IntensityAnswer {
  ModelShape model;
  sim::IntensityTable table;                    // of the phase, or of prefill
  std::optional<sim::IntensityTable> decode{};  // of both phases
  std::vector<RidgePoint> ridges{};
};

// Throws InputError for a model that cannot be had so, or has no such layer.
[[nodiscard]] IntensityAnswer layer_intensity(const IntensityQuestion& question);

struct FootprintQuestion {
  TableModel model;
  std::optional<WeightFormat> weights{};  // absent: the checkpoint's
  sim::FootprintRequest request;          // its weights aside
  std::vector<std::string> machines{};    // whose memory the KV cache has to fit in; names or files
};

// What a machine's memory leaves for K and V beside the model's own weights, as sim/memory/capacity.hpp counts it.
struct KvRoom {
  std::string machine;
  Bytes memory;
  Bytes kv_bytes;  // 0: the weights alone do not fit
};

struct FootprintAnswer {
  ModelShape model;
  WeightFormat weights{};  // of the layers' matrices
  sim::Footprint own{};
  std::vector<sim::Footprint> rows{};  // of every number of KV heads, and of latents
  std::vector<KvRoom> rooms{};         // in the order of the machines
};

// The longest context of the question's sequences that fits in a machine with the weights of a row; 0: none does.
[[nodiscard]] std::int64_t longest_context(const FootprintQuestion& question, const FootprintAnswer& answer,
                                           const sim::Footprint& row, const KvRoom& room);

// Throws InputError for a model that cannot be had so, or whose K and V are not kept in the format.
[[nodiscard]] FootprintAnswer model_footprint(const FootprintQuestion& question);

}  // namespace dculab::study

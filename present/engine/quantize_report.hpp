// What `dculab quantize` did: of each matrix and of the KV cache, and how far outputs move.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/calibration/kv_ranges.hpp"
#include "engine/checkpoint/kv_calibration.hpp"
#include "engine/quantize/model_quantizer.hpp"
#include "present/output/report.hpp"

namespace dculab::present {

// Of one layer.
struct KvScaleRow {
  engine::KvRange range;
  kernels::Fp8KvScales scales;
};

struct QuantizedAnswer {
  std::string method;                                        // as the user calls it
  std::string output;                                        // the folder, written
  engine::QuantizeOptions options{};                         // of the weights,
  std::optional<engine::QuantizedModel> model{};             // which may stay as they are
  std::vector<KvScaleRow> kv_scales{};                       // [num_hidden_layers] or empty
  std::vector<engine::KvLayerCalibration> kv_calibration{};  // the same
  std::size_t calibration_tokens = 0;
};

[[nodiscard]] Report quantize_report(const QuantizedAnswer& answer);

}  // namespace dculab::present

// A model folder with quantized matrices, or with what a quantized KV cache needs to know, made of another.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "engine/calibration/kv_ranges.hpp"
#include "engine/kv/kv_calibration.hpp"
#include "engine/measure/step_bench.hpp"
#include "engine/quantize/model_quantizer.hpp"

namespace dculab::study {

// How matrices are to be stored. What is absent is as the method has it.
struct WeightChoices {
  engine::QuantizationMethod method = engine::QuantizationMethod::gptq;
  std::optional<int> bits{};        // gptq, rtn: 4; else 8
  std::optional<int> group_size{};  // in-features that share a scale; gptq, rtn: 128; else -1, all of a row
  bool desc_act = false;
  bool sym = false;
  bool lm_head = false;
  bool one_pass = false;  // not true_sequential
  double damp = 0.01;
  double alpha = 0.5;
  QuantizedFormat format = QuantizedFormat::gptq;
};

// Throws InputError for symmetric zero points where the method has none.
[[nodiscard]] engine::QuantizeOptions quantize_options(const WeightChoices& choices, int num_threads);

struct QuantizeQuestion {
  std::string model;                     // a folder, or a name under scenarios/models
  std::optional<WeightChoices> weights;  // absent: they stay as they are
  std::optional<Dtype> kv_cache_dtype;   // whose scales, or codes, are found on the calibration text
  std::string fisher_file;               // of a KV cache with codes; empty: none
  std::string calibration_file;          // text; empty: none
  int calibration_tokens = 16384;        // of it, at most
  int threads = 0;                       // 0 = all cores
  std::string output;                    // the new folder, which is empty or not there
};

// Of one layer.
struct KvScaleRow {
  engine::KvRange range;
  kernels::Fp8KvScales scales;
};

struct QuantizedAnswer {
  engine::QuantizeOptions options{};                         // of the weights,
  std::optional<engine::QuantizedModel> model{};             // which may stay as they are
  std::vector<KvScaleRow> kv_scales{};                       // [num_hidden_layers] or empty
  std::vector<engine::KvLayerCalibration> kv_calibration{};  // the same
  std::size_t calibration_tokens = 0;
};

// Writes the folder whole or not at all. Throws InputError, as far as it can before the work.
[[nodiscard]] QuantizedAnswer quantize_folder(const QuantizeQuestion& question, const engine::BenchProgress& progress);

}  // namespace dculab::study

// Quantizes the layers' matrices of a model, layer after layer: each layer's inputs are those that the layers before
// it, quantized already, really give.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"
#include "engine/checkpoint/model_weights.hpp"
#include "engine/quantize/gptq.hpp"
#include "model/quantization_config.hpp"

namespace dculab::engine {

enum class QuantizationMethod : std::uint8_t {
  gptq,
  rtn,           // round to nearest, a grid per group
  absmax,        // symmetric int8, a scale per row
  zero_point,    // asymmetric int8, a scale and a zero point per row
  smooth_quant,  // absmax after SmoothQuant, for 8-bit activations
};

[[nodiscard]] std::string_view name(QuantizationMethod method);

struct QuantizeOptions {
  QuantizationMethod method = QuantizationMethod::gptq;
  QuantizationConfig config{
      .format = QuantizedFormat::gptq, .bits = 4, .group_size = 128, .desc_act = false, .sym = false};
  double damp = 0.01;           // gptq: share of the mean diagonal of the Hessian
  double alpha = 0.5;           // smooth_quant
  bool true_sequential = true;  // the matrices of a layer one op after another, as they run
  int num_threads = 1;
};

// Everything that makes the options unusable for the model, one sentence each; empty when they are sound.
[[nodiscard]] std::vector<std::string> problems(const QuantizeOptions& options, const ModelWeights& weights);

struct QuantizedModule {
  std::string name;  // "model.layers.0.self_attn.q_proj"
  kernels::QuantizedMatrix matrix;
  double relative_error = 0;  // of its outputs on the calibration text; of its weights when there is none
  int dead_columns = 0;       // gptq: in-features that were always 0
};

struct QuantizedModel {
  std::vector<QuantizedModule> modules;
  std::map<std::string, std::vector<float>> changed;  // tensors that smoothing changed: norms
};

using QuantizeProgress = std::function<void(const std::string& label, double share)>;

// Preconditions: problems() is empty; the weights are not quantized. `tokens` is the calibration text, which gptq and
// smooth_quant need; with the others it is for the errors alone, and may be empty. Throws InputError naming the matrix:
// a singular Hessian, activations or weights that are not finite.
[[nodiscard]] QuantizedModel quantize_model(const ModelWeights& weights, std::span<const TokenId> tokens,
                                            const QuantizeOptions& options, const QuantizeProgress& progress);

}  // namespace dculab::engine

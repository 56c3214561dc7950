#include "engine/quantize/model_quantizer.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/packed_layers.hpp"
#include "engine/checkpoint/quantized_tensors.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/quantize/calibration.hpp"
#include "engine/quantize/input_statistics.hpp"
#include "engine/quantize/layer_matrices.hpp"
#include "engine/quantize/output_error.hpp"
#include "engine/quantize/smooth_quant.hpp"

namespace dculab::engine {
namespace {

using Statistics = std::map<WeightSlot, InputStatistics>;

[[nodiscard]] GridOptions grid_options(const QuantizeOptions& options) {
  GridOptions grid{.bits = options.config.bits, .kind = GridKind::asymmetric, .lowest_zero = 0};
  if (options.config.format == QuantizedFormat::gptq) grid.lowest_zero = 1;
  const QuantizationMethod method = options.method;
  if (method == QuantizationMethod::absmax || method == QuantizationMethod::smooth_quant)
    grid.kind = GridKind::absmax;
  else if (method != QuantizationMethod::zero_point && options.config.sym)
    grid.kind = GridKind::symmetric;
  return grid;
}

// Carries a model through its layers.
class ModelQuantizer {
 public:
  ModelQuantizer(const ModelWeights& weights, std::span<const TokenId> tokens, const QuantizeOptions& options)
      : options_(options),
        grid_(grid_options(options)),
        original_(weights),
        calibration_(widened_to_f32(weights), tokens, options.num_threads) {}

  void quantize_layer(int layer) {
    if (options_.method == QuantizationMethod::smooth_quant) smooth_layer(layer);
    const std::vector<LayerMatmul> matmuls = layer_matmuls(calibration_.weights(), layer);
    if (options_.true_sequential) {
      for (const LayerMatmul& matmul : matmuls) quantize_matmuls(layer, std::span(&matmul, 1));
    } else {
      quantize_matmuls(layer, matmuls);
    }
    calibration_.advance(layer);
  }

  void quantize_head() {
    const std::vector<TensorSlot> slots = tensor_slots(calibration_.weights());
    const auto head = std::ranges::find(slots, WeightSlot::lm_head, &TensorSlot::slot);
    InputStatistics statistics(head->columns);
    calibration_.observe_head(
        [&](const Op&, std::span<const float> input) { statistics.add(calibration_.threads(), input); });
    quantize_matmul({WeightSlot::lm_head, {*head}}, statistics);
  }

  [[nodiscard]] QuantizedModel take() { return std::move(result_); }

 private:
  [[nodiscard]] Statistics observe(int layer, std::span<const LayerMatmul> matmuls) {
    Statistics statistics;
    for (const LayerMatmul& matmul : matmuls) statistics.emplace(matmul.weight, matmul.slots.front().columns);
    calibration_.observe(layer, [&](const Op& op, std::span<const float> input) {
      const auto found = statistics.find(op.weight);
      if (found == statistics.end()) return;
      try {
        found->second.add(calibration_.threads(), input);
      } catch (const InputError& error) {
        throw InputError("layer " + std::to_string(layer) + ", input of " + std::string(op.name), error.what());
      }
    });
    return statistics;
  }

  void quantize_matmuls(int layer, std::span<const LayerMatmul> matmuls) {
    const Statistics statistics = observe(layer, matmuls);
    for (const LayerMatmul& matmul : matmuls) quantize_matmul(matmul, statistics.at(matmul.weight));
  }

  void quantize_matmul(const LayerMatmul& matmul, const InputStatistics& statistics) {
    const std::vector<float> hessian = statistics.tokens() > 0 ? statistics.hessian() : std::vector<float>();
    std::optional<InverseFactor> factor;
    for (const std::span<const TensorSlot> tensor : tensors_of(matmul)) {
      const std::string module = module_name(tensor.front());
      try {
        if (options_.method == QuantizationMethod::gptq && !factor)
          factor = factor_inverse(hessian, statistics.columns(),
                                  options_.config.desc_act ? ColumnOrder::by_activation : ColumnOrder::as_stored,
                                  options_.damp);
        quantize_tensor(tensor, hessian, factor ? &*factor : nullptr);
      } catch (const InputError& error) {
        throw InputError(module, error.what());
      }
    }
  }

  // Rows do not know of one another, so a fused tensor is quantized like any other.
  void quantize_tensor(std::span<const TensorSlot> tensor, std::span<const float> hessian,
                       const InverseFactor* factor) {
    const TensorSlot& any = tensor.front();
    const std::vector<float> joined = joined_rows(tensor);
    const WeightMatrix weights{joined, any.tensor_rows(), any.columns};
    const int group_size = options_.config.group_size == -1 ? any.columns : options_.config.group_size;
    QuantizedModule module;
    module.name = module_name(any);
    module.matrix = factor == nullptr ? round_to_nearest(weights, grid_, group_size)
                                      : gptq(calibration_.threads(), weights, *factor, grid_, group_size);
    module.dead_columns = factor == nullptr ? 0 : factor->dead_columns;
    const std::vector<float> values = dequantized(module.matrix);
    module.relative_error = relative_output_error(weights, values, hessian);
    for (const TensorSlot& slot : tensor) replace(slot, rows_of(slot, values));
    result_.modules.push_back(std::move(module));
  }

  [[nodiscard]] static WeightMatrix matrix_of(const TensorSlot& slot) {
    return {{static_cast<const float*>(slot.view->data), slot.values()}, slot.rows, slot.columns};
  }

  void replace(const TensorSlot& slot, std::vector<float> values) {
    auto kept = std::make_shared<const std::vector<float>>(std::move(values));
    slot.view->data = kept->data();
    calibration_.weights().memory.push_back(std::move(kept));
  }

  // Both norms of a layer; Q, K, V and gate, up take their scales. Others follow no norm and stay.
  void smooth_layer(int layer) {
    ModelWeights& weights = calibration_.weights();
    const std::vector<LayerMatmul> matmuls = layer_matmuls(weights, layer);
    const Statistics statistics = observe(layer, matmuls);
    WeightSlots& views = weights.layers[static_cast<std::size_t>(layer)];
    for (const LayerMatmul& matmul : matmuls) {
      if (matmul.weight == WeightSlot::qkv_proj)
        smooth(matmul, statistics.at(matmul.weight), views[WeightSlot::attention_norm].weights[0]);
      if (matmul.weight == WeightSlot::up_proj && weights.shape.layer(layer).mlp.kind == MlpKind::gated)
        smooth(matmul, statistics.at(matmul.weight), views[WeightSlot::mlp_norm].weights[0]);
    }
  }

  void smooth(const LayerMatmul& matmul, const InputStatistics& statistics, kernels::WeightView& norm_view) {
    std::vector<WeightMatrix> matrices;
    for (const TensorSlot& slot : matmul.slots) matrices.push_back(matrix_of(slot));
    const std::vector<TensorSlot> slots = tensor_slots(calibration_.weights());
    const TensorSlot norm = *std::ranges::find(slots, &norm_view, &TensorSlot::view);
    const std::span<const float> values(static_cast<const float*>(norm_view.data), norm.values());
    const std::vector<float> scales =
        smoothing_scales(statistics.largest(), matrices, values, stored_dtype(norm.name), options_.alpha);
    std::vector<float> folded(values.begin(), values.end());
    for (std::size_t j = 0; j < folded.size(); ++j) folded[j] /= scales[j];
    result_.changed[norm.name] = folded;
    replace(norm, std::move(folded));
    for (const TensorSlot& slot : matmul.slots) {
      const WeightMatrix matrix = matrix_of(slot);
      std::vector<float> scaled(matrix.values.begin(), matrix.values.end());
      scale_columns(scaled, scales);
      replace(slot, std::move(scaled));
    }
  }

  // Of a tensor in the checkpoint.
  [[nodiscard]] Dtype stored_dtype(const std::string& tensor) {
    const std::vector<TensorSlot> slots = tensor_slots(original_);
    return std::ranges::find(slots, tensor, &TensorSlot::name)->view->dtype;
  }

  const QuantizeOptions& options_;
  GridOptions grid_;
  ModelWeights original_;
  Calibration calibration_;
  QuantizedModel result_;
};

void add_size_problems(std::vector<std::string>& found, const QuantizationConfig& config, const TensorSlot& slot) {
  const auto add = [&](const std::string& what) { found.push_back(module_name(slot) + ": " + what); };
  if (config.group_size > 0 && slot.columns % config.group_size != 0)
    add("groups of " + std::to_string(config.group_size) + " do not divide its " + std::to_string(slot.columns) +
        " in-features; choose another --group-size");
  const int multiple = packing_multiple(config.bits);
  if (slot.tensor_rows() % multiple != 0 || slot.columns % multiple != 0)
    add("a [" + std::to_string(slot.tensor_rows()) + ", " + std::to_string(slot.columns) + "] matrix of " +
        std::to_string(config.bits) + " bits does not fill whole words; its sizes must be multiples of " +
        std::to_string(multiple));
}

void add_method_problems(std::vector<std::string>& found, const QuantizeOptions& options, const ModelShape& shape) {
  const QuantizationConfig& config = options.config;
  const std::string method(name(options.method));
  const bool per_row = options.method != QuantizationMethod::gptq && options.method != QuantizationMethod::rtn;
  if (per_row && (config.bits != 8 || config.group_size != -1))
    found.push_back(method + " has 8 bits and a scale per row (--bits 8 --group-size -1)");
  if (options.method != QuantizationMethod::gptq && config.desc_act)
    found.push_back("--desc-act orders the columns of GPTQ; " + method + " has no such order");
  const auto is_llama = [&shape](const LayerKind& kind) {
    return shape.norm == NormKind::rms_norm && !shape.unit_offset_norms && kind.norms == NormPlacement::pre &&
           kind.block == BlockKind::sequential && kind.mlp.kind == MlpKind::gated;
  };
  if (options.method == QuantizationMethod::smooth_quant && !std::ranges::all_of(shape.kinds, is_llama))
    found.push_back("smoothquant folds scales into the two RMS norms of a Llama layer; this model has others");
}

}  // namespace

std::string_view name(QuantizationMethod method) {
  constexpr std::array<std::string_view, 5> names{"gptq", "rtn", "absmax", "zero-point", "smoothquant"};
  return names[static_cast<std::size_t>(method)];
}

std::vector<std::string> problems(const QuantizeOptions& options, const ModelWeights& weights) {
  std::vector<std::string> found;
  const QuantizationConfig& config = options.config;
  if (weights.shape.quantization)
    found.push_back("the model is quantized already; start from its F16 or BF16 checkpoint");
  if (config.bits != 2 && config.bits != 3 && config.bits != 4 && config.bits != 8)
    found.push_back("--bits must be 2, 3, 4 or 8, not " + std::to_string(config.bits));
  if (config.group_size != -1 && (config.group_size < 8 || config.group_size % 8 != 0))
    found.push_back("--group-size must be a multiple of 8, or -1 for a scale per row, not " +
                    std::to_string(config.group_size));
  if (!(options.damp >= 0)) found.push_back("--damp must be a number, at least 0");
  if (!(options.alpha >= 0 && options.alpha <= 1)) found.push_back("--alpha must lie in [0, 1]");
  if (!found.empty()) return found;
  if (config.lm_head && weights.shape.tie_word_embeddings)
    found.push_back("--lm-head: the model's lm_head is its embedding, which stays as it is");
  add_method_problems(found, options, weights.shape);
  ModelWeights copy = weights;
  for (const TensorSlot& slot : tensor_slots(copy)) {
    const bool is_later_part = slot.pick.first > 0;  // of a tensor that is looked at already
    if (is_quantized_matrix(slot, config.lm_head) && !is_later_part) add_size_problems(found, config, slot);
  }
  return found;
}

QuantizedModel quantize_model(const ModelWeights& weights, std::span<const TokenId> tokens,
                              const QuantizeOptions& options, const QuantizeProgress& progress) {
  const bool needs_text =
      options.method == QuantizationMethod::gptq || options.method == QuantizationMethod::smooth_quant;
  if (needs_text && tokens.empty())
    throw InputError(std::string(name(options.method)) + " needs calibration text (--calibration FILE)");
  const auto has_own_kv = [](const LayerKind& kind) { return kind.has_kv_heads() && !kind.gqa().shares_kv; };
  if (!tokens.empty() && !std::ranges::all_of(weights.shape.kinds, has_own_kv))
    throw InputError(
        "calibration runs one layer at a time on text, which layers over latents, or over the K and V of an earlier "
        "layer, do not allow; use --method rtn, absmax or zero-point without --calibration");
  const auto is_mixture = [](const LayerKind& kind) { return kind.experts.has_value(); };
  if (!tokens.empty() && std::ranges::any_of(weights.shape.kinds, is_mixture))
    throw InputError(
        "calibration text shows what all experts together read, not what each of a mixture of experts does; "
        "use --method rtn, absmax or zero-point without --calibration");
  ModelQuantizer quantizer(weights, tokens, options);
  const int layers = weights.shape.num_layers();
  for (int layer = 0; layer < layers; ++layer) {
    if (progress) progress("layer " + std::to_string(layer), static_cast<double>(layer) / layers);
    quantizer.quantize_layer(layer);
  }
  if (options.config.lm_head) quantizer.quantize_head();
  return quantizer.take();
}

}  // namespace dculab::engine

#include "core/activation_mode.hpp"

namespace dculab {

std::string_view name(ActivationMode mode) {
  switch (mode) {
    case ActivationMode::exact:
      return "exact";
    case ActivationMode::int8:
      return "int8";
    case ActivationMode::bf16:
      return "bf16";
  }
  return {};
}

std::optional<ActivationMode> parse_activation_mode(std::string_view text) {
  for (const ActivationMode mode : {ActivationMode::exact, ActivationMode::int8, ActivationMode::bf16})
    if (text == name(mode)) return mode;
  return std::nullopt;
}

bool takes_activations(WeightFormat weights, ActivationMode mode) {
  switch (mode) {
    case ActivationMode::exact:
      return true;
    case ActivationMode::int8:
      return weights.group_size != 0;
    case ActivationMode::bf16:
      return weights.dtype == Dtype::bf16 && weights.group_size == 0;
  }
  return false;
}

std::string problem(ActivationMode mode, const ModelShape& model) {
  const std::string stored = "those of " + model.name + " are " + std::string(name(model.layer_format().dtype));
  if (!takes_activations(model.layer_format(), mode))
    return mode == ActivationMode::int8 ? "needs quantized weights, and " + stored + "; quantize the model first"
                                        : "needs BF16 weights, and " + stored + "; use exact";
  if (mode == ActivationMode::bf16 && (model.hidden_size % 2 != 0 || model.intermediate_size % 2 != 0))
    return "needs an even hidden_size and intermediate_size, which " + model.name + " has not; use exact";
  return {};
}

}  // namespace dculab

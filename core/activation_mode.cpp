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
    case ActivationMode::fp8:
      return "fp8";
  }
  return {};
}

std::optional<ActivationMode> parse_activation_mode(std::string_view text) {
  for (const ActivationMode mode :
       {ActivationMode::exact, ActivationMode::int8, ActivationMode::bf16, ActivationMode::fp8})
    if (text == name(mode)) return mode;
  return std::nullopt;
}

bool takes_activations(WeightFormat weights, ActivationMode mode) {
  switch (mode) {
    case ActivationMode::exact:
      return true;
    case ActivationMode::int8:
      return is_integer(weights.dtype) && weights.group_size != 0;
    case ActivationMode::bf16:
      return weights.dtype == Dtype::bf16 && weights.group_size == 0;
    case ActivationMode::fp8:
      return weights.dtype == Dtype::fp8_e4m3;
  }
  return false;
}

}  // namespace dculab

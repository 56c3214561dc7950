#include "core/activation_mode.hpp"

namespace dculab {

std::string_view name(ActivationMode mode) { return mode == ActivationMode::exact ? "exact" : "int8"; }

std::optional<ActivationMode> parse_activation_mode(std::string_view text) {
  for (const ActivationMode mode : {ActivationMode::exact, ActivationMode::int8})
    if (text == name(mode)) return mode;
  return std::nullopt;
}

}  // namespace dculab

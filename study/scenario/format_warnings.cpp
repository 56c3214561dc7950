#include "study/scenario/format_warnings.hpp"

#include <algorithm>

#include "config/weight_format_text.hpp"
#include "core/activation_mode.hpp"
#include "lower/dculab_gpu/matrix_cores.hpp"
#include "sim/compute/peak.hpp"

namespace dculab::study {
namespace {

// Whether it is the same to a price which of the two is multiplied: both have 16 bits, and matrix units one rate. Our
// own kernels convert all the same; others' multiply BF16 as it is.
[[nodiscard]] bool are_alike(const sim::Machine& machine, Dtype a, Dtype b) {
  const auto is_half = [](Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16; };
  const auto first = machine.peaks.find(a), second = machine.peaks.find(b);
  return !machine.stack.is_own() && is_half(a) && is_half(b) && first != machine.peaks.end() &&
         second != machine.peaks.end() && first->second.matrix && first->second.matrix == second->second.matrix;
}

[[nodiscard]] bool leaves_matrix_units_idle(const sim::Machine& machine) {
  return machine.stack.is_own() && machine.has_matrix_cores && !machine.isa.empty() &&
         lower::dculab_gpu::units_of(machine) == lower::dculab_gpu::Units::vector;
}

}  // namespace

std::vector<std::string> format_warnings(const sim::Machine& machine, const EngineOptions& options) {
  std::vector<std::string> warnings;
  const auto check = [&](const char* what, Dtype stored, Dtype activations) {
    const Dtype multiplied = sim::multiply_format(machine, activations).dtype;
    const auto peak = machine.peaks.find(stored);
    const std::string begin = std::string(what) + " in " + std::string(name(stored)) + ": ";
    const std::string converted = "predicted with a conversion to " + std::string(name(multiplied));
    if (peak == machine.peaks.end()) {
      warnings.push_back(begin + machine.name + " has no such arithmetic; " + converted);
      return;
    }
    if (stored != multiplied) {
      if (!are_alike(machine, stored, multiplied))
        warnings.push_back(begin + converted + ", the format of the activations");
      return;
    }
    const std::string key = "peaks." + std::string(name(stored)) + (peak->second.matrix ? ".matrix" : ".vector");
    if (std::find(machine.assumed.begin(), machine.assumed.end(), key) != machine.assumed.end())
      warnings.push_back(begin + "the rate on " + machine.name + " is " + machine.sources.at(key));
  };
  const ActivationMode mode = options.activations;
  const bool fits = takes_activations(options.weights, mode);
  if (!fits)
    warnings.push_back("activations " + std::string(name(mode)) + ": not with weights of " +
                       config::weight_format_text(options.weights) + "; products are predicted with exact ones");
  const bool rounded = fits && mode == ActivationMode::int8 && machine.peaks.contains(Dtype::int8);
  if (rounded)
    check("weights and activations", Dtype::int8, Dtype::int8);
  else if (fits && mode == ActivationMode::bf16)
    check("weights and activations", Dtype::bf16, Dtype::bf16);
  else if (fits && mode == ActivationMode::fp8)
    check("weights and activations", Dtype::fp8_e4m3, Dtype::fp8_e4m3);
  else
    check("weights", options.weights.dtype, options.activation_dtype);
  if (options.kv_cache_dtype != options.weights.dtype)
    check("KV cache", options.kv_cache_dtype, options.activation_dtype);
  const auto caveat = machine.stack.caveats.find(config::weight_format_text(options.weights));
  if (caveat != machine.stack.caveats.end()) warnings.push_back(caveat->second);
  if (leaves_matrix_units_idle(machine))
    warnings.push_back(
        "dculab's kernels do not use the matrix units of " + machine.name + " (" + machine.isa +
        "), only those of gfx908 and gfx90a; rocBLAS computes its products of f16 by f16 without a bias");
  return warnings;
}

}  // namespace dculab::study

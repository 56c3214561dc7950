#include "sim/compute/compiled_kernels.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "sim/compute/kernel_name.hpp"

namespace dculab::sim {
namespace {

constexpr CompiledKernel kCompiledKernels[] = {
#include "compiled_kernels.inc"
};

[[nodiscard]] const CompiledKernel* find(std::string_view target, std::string_view name) {
  const auto place = std::lower_bound(
      std::begin(kCompiledKernels), std::end(kCompiledKernels), std::tuple(target, name),
      [](const CompiledKernel& kernel, const auto& wanted) { return std::tuple(kernel.target, kernel.name) < wanted; });
  const bool found = place != std::end(kCompiledKernels) && place->target == target && place->name == name;
  return found ? place : nullptr;
}

// All that kernel_name() goes by, in one number: composing a name for every op of every step would cost more than the
// rest of its price.
[[nodiscard]] std::uint64_t digest(const Op& op, int wave_size) {
  std::uint64_t value = 0;
  const auto add = [&value](int bits_of, std::int64_t part) {
    value = value << bits_of | static_cast<std::uint64_t>(part);
  };
  add(4, static_cast<int>(op.kind));
  add(1, wave_size == 64 ? 1 : 0);
  add(4, static_cast<int>(op.activation_dtype));
  add(4, static_cast<int>(op.weight_format.dtype));
  add(1, static_cast<int>(op.activations));
  add(1, op.weight_format.group_size == op.k ? 1 : 0);
  add(1, op.flops > FlopCount() ? 1 : 0);
  add(1, op.name == "gelu" ? 1 : 0);
  add(4, static_cast<int>(op.attention.kv_dtype));
  add(12, op.attention.head_dim);
  add(12, op.attention.heads_per_workgroup);
  add(8, std::min<std::int64_t>(op.m, 129));
  return value;
}

}  // namespace

std::span<const CompiledKernel> compiled_kernels() { return kCompiledKernels; }

std::optional<KernelResources> find_compiled_kernel(std::string_view target, std::string_view name) {
  const CompiledKernel* kernel = find(target, name);
  return kernel == nullptr ? std::nullopt : std::optional(kernel->resources);
}

std::optional<KernelResources> compiled_resources(const Machine& machine, const Op& op) {
  if (machine.kernel_target.empty()) return std::nullopt;
  // A kernel of the table outlives the program, so what was found for one machine's target holds for all.
  thread_local std::map<std::string, std::unordered_map<std::uint64_t, const CompiledKernel*>> known_by_target;
  auto& known = known_by_target[machine.kernel_target];
  const auto [place, is_new] = known.try_emplace(digest(op, machine.waves.wave_size), nullptr);
  if (is_new) place->second = find(machine.kernel_target, kernel_name(op, machine.waves.wave_size));
  if (place->second == nullptr) return std::nullopt;
  return place->second->resources;
}

}  // namespace dculab::sim

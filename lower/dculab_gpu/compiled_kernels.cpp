#include "lower/dculab_gpu/compiled_kernels.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace dculab::lower::dculab_gpu {
namespace {

constexpr CompiledKernel kCompiledKernels[] = {
#include "compiled_kernels.inc"
};

// The kernels of one target that run an op alone, by id.
struct Target {
  std::string_view name;
  std::vector<std::pair<KernelId, KernelResources>> kernels;
};

[[nodiscard]] std::vector<Target> targets_by_id() {
  std::vector<Target> targets;
  for (const CompiledKernel& kernel : kCompiledKernels) {
    if (targets.empty() || targets.back().name != kernel.target) targets.push_back({kernel.target, {}});
    if (const auto id = parse_kernel(kernel.name)) targets.back().kernels.emplace_back(*id, kernel.resources);
  }
  for (Target& target : targets) std::ranges::sort(target.kernels, {}, [](const auto& each) { return each.first; });
  return targets;
}

}  // namespace

std::span<const CompiledKernel> compiled_kernels() { return kCompiledKernels; }

std::optional<KernelResources> find_compiled_kernel(std::string_view target, std::string_view name) {
  const auto place = std::lower_bound(
      std::begin(kCompiledKernels), std::end(kCompiledKernels), std::tuple(target, name),
      [](const CompiledKernel& kernel, const auto& wanted) { return std::tuple(kernel.target, kernel.name) < wanted; });
  const bool found = place != std::end(kCompiledKernels) && place->target == target && place->name == name;
  return found ? std::optional(place->resources) : std::nullopt;
}

std::optional<KernelResources> compiled_resources(std::string_view name, const KernelId& id) {
  static const std::vector<Target> targets = targets_by_id();
  const auto target = std::ranges::find(targets, name, &Target::name);
  if (target == targets.end()) return std::nullopt;
  const auto id_of = [](const auto& each) -> const KernelId& { return each.first; };
  const auto place = std::ranges::lower_bound(target->kernels, id, {}, id_of);
  if (place == target->kernels.end() || place->first != id) return std::nullopt;
  return place->second;
}

}  // namespace dculab::lower::dculab_gpu

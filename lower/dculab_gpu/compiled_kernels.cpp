#include "lower/dculab_gpu/compiled_kernels.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace dculab::lower::dculab_gpu {
namespace {

constexpr CompiledKernel kCompiledKernels[] = {
#include "compiled_kernels.inc"
};

struct HashOfId {
  [[nodiscard]] std::size_t operator()(const KernelId& id) const {
    std::size_t hash = 0;
    for (const int field : {static_cast<int>(id.kernel), id.wave_size, id.rows, id.token_lanes, id.lane_heads,
                            static_cast<int>(id.is_team), static_cast<int>(id.values), static_cast<int>(id.stored)})
      hash = hash * 61 + static_cast<std::size_t>(field);
    return hash;
  }
};

// The kernels of one target that run an op alone, by id.
struct Target {
  std::string_view name;
  std::unordered_map<KernelId, KernelResources, HashOfId> kernels;
};

[[nodiscard]] std::vector<Target> targets_by_id() {
  std::vector<Target> targets;
  for (const CompiledKernel& kernel : kCompiledKernels) {
    if (targets.empty() || targets.back().name != kernel.target) targets.push_back({kernel.target, {}});
    if (const auto id = parse_kernel(kernel.name)) targets.back().kernels.emplace(*id, kernel.resources);
  }
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
  const auto place = target->kernels.find(id);
  return place == target->kernels.end() ? std::nullopt : std::optional(place->second);
}

}  // namespace dculab::lower::dculab_gpu

#include "study/decide/stack_limits.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "lower/dculab_cpu/geometry.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::study {
namespace {

// Why `machine`, running a stack, does not serve the options; empty when it does.
[[nodiscard]] std::string refusal(const sim::Machine& machine, const ModelShape& model, EngineOptions options,
                                  int block_size, Dtype dtype) {
  options.block_size = block_size;
  options.kv_cache_dtype = dtype;
  try {
    require_served(machine, model, options);
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

[[nodiscard]] StackLimits own_limits(const ModelShape& model, const sim::Machine& machine) {
  StackLimits limits{.stack = machine.stack,
                     .block_sizes = {16, 1, 2, 4, 8, 32, 64, 128, 256},
                     .partition_tokens = {lower::dculab_cpu::kPartitionTokens},
                     .kv_dtypes = {Dtype::f16, Dtype::fp8_e4m3},
                     .why_not = {}};
  if (machine.kind == lower::DeviceKind::cpu) return limits;
  limits.partition_tokens = {512, 256, 1024, 2048, 0};
  for (const LayerKind& kind : model.kinds)
    if (kind.has_kv_heads() && !lower::dculab_gpu::is_supported_head_dim(kind.gqa().heads.head_dim))
      limits.why_not = "no kernel for head_dim " + std::to_string(kind.gqa().heads.head_dim);
  return limits;
}

// Of the options, how weights and activations are stored counts.
[[nodiscard]] StackLimits limits_of(const ModelShape& model, const EngineOptions& options,
                                    const sim::Machine& machine) {
  if (machine.stack.is_own()) return own_limits(model, machine);
  const int usual = machine.stack.defaults.block_size;
  StackLimits limits{.stack = machine.stack, .block_sizes = {}, .partition_tokens = {}, .kv_dtypes = {}, .why_not = {}};
  for (const int size : {usual, 16, 1, 2, 4, 8, 32, 64, 128, 256})
    if (std::ranges::find(limits.block_sizes, size) == limits.block_sizes.end() &&
        refusal(machine, model, options, size, Dtype::f16).empty())
      limits.block_sizes.push_back(size);
  if (limits.block_sizes.empty()) {
    limits.why_not = refusal(machine, model, options, usual, Dtype::f16);
    return limits;
  }
  for (const Dtype dtype : {Dtype::f16, Dtype::fp8_e4m3})
    if (refusal(machine, model, options, limits.block_sizes.front(), dtype).empty()) limits.kv_dtypes.push_back(dtype);
  return limits;
}

}  // namespace

std::vector<StackLimits> stack_limits(const ModelShape& model, const EngineOptions& options,
                                      const sim::Machine& machine) {
  std::vector<StackLimits> all{limits_of(model, options, machine)};
  sim::Machine other = machine;
  for (sim::Stack& stack : shipped_stacks()) {
    if (stack.name == machine.stack.name || !sim::is_for(stack, machine)) continue;
    other.stack = sim::stack_on(machine, std::move(stack));
    all.push_back(limits_of(model, options, other));
  }
  return all;
}

std::vector<Dtype> known_kv_dtypes(const StackLimits& limits, const sim::Machine& machine) {
  std::vector<Dtype> known;
  for (const Dtype dtype : limits.kv_dtypes)
    if (limits.stack.is_own() || bits(dtype) >= 16 || machine.peaks.contains(dtype)) known.push_back(dtype);
  return known;
}

std::string sizes_text(std::vector<int> sizes) {
  std::sort(sizes.begin(), sizes.end());
  std::string text;
  for (const int size : sizes) text += (text.empty() ? "" : ", ") + (size == 0 ? "unsplit" : std::to_string(size));
  return text;
}

}  // namespace dculab::study

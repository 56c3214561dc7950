// Which op of a step plan a kernel belongs to, by its name. One table, in kernel_map.cpp; `dculab import
// --list-kernels` prints it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/op.hpp"

namespace dculab::config {

enum class KernelRole : std::uint8_t {
  embedding,
  norm,
  matmul,  // which one is told by its place in the layer, not by its name
  rope_and_cache,
  prefill_attention,
  decode_attention,
  any_attention,  // serves prefill and decode under one name
  activation,
  sampling,
  data_movement,  // copies, fills, conversions
  unknown,
};
[[nodiscard]] std::string_view name(KernelRole role);

// Kernels whose name contains `part` have this role.
struct KernelRule {
  std::string_view part;
  KernelRole role;
  std::string_view origin;  // whose kernels these are
};

// In order: the first rule that fits decides.
[[nodiscard]] std::span<const KernelRule> kernel_rules();

[[nodiscard]] KernelRole role_of(std::string_view kernel_name);

// Whether kernels of this role do an op's work.
[[nodiscard]] bool serves(KernelRole role, OpKind kind);

// Whether kernels of this role do work that no op of a plan stands for.
[[nodiscard]] bool is_other(KernelRole role);

}  // namespace dculab::config

// Which op of a step plan a kernel belongs to, by its name. One table, in kernel_map.cpp; `dculab import
// --list-kernels` prints it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/op.hpp"

namespace dculab::config {

enum class KernelRole : std::uint8_t {
  embedding,
  norm,
  matmul,                 // which one is told by its place in the layer, not by its name
  matmul_and_activation,  // the first products of experts with what follows them, in one kernel
  routing,                // which experts a token goes to, and in which order
  combining,              // of what the experts say
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

// The same from the user, who knows kernels that the table does not; these come first.
struct NamedKernels {
  std::string part;
  KernelRole role;
};
// "my_norm=norm". Throws InputError, which names the roles.
[[nodiscard]] NamedKernels parse_named_kernels(const std::string& text);

[[nodiscard]] KernelRole role_of(std::string_view kernel_name, std::span<const NamedKernels> named = {});

// Whether kernels of this role do an op's work.
[[nodiscard]] bool serves(KernelRole role, OpKind kind);

// Whether kernels of this role do work that no op of a plan stands for.
[[nodiscard]] bool is_other(KernelRole role);

}  // namespace dculab::config

// How our GPU kernels do the products of groups: of a mixture of experts in tiles of one expert's rows each
// (expert_plan.hpp), MLA's absorbed ones in tiles of one head's tokens (latent_tiling.hpp).
#pragma once

#include "core/op.hpp"
#include "lower/dculab_gpu/kernel_id.hpp"
#include "lower/device.hpp"
#include "lower/launch.hpp"

namespace dculab::lower::dculab_gpu {

// Tiles that hold a row, on average over what the load may give each expert. Precondition: op.groups.count > 0.
[[nodiscard]] double expert_tiles(const Op& op);

// Columns of y that a workgroup of the kernel computes.
[[nodiscard]] int expert_columns(const KernelId& kernel);

// Cuts a launch of the products of all groups (extend_to_all_experts) as our kernels do.
void cut_expert_product(const Op& op, const Device& device, Launch& launch);

}  // namespace dculab::lower::dculab_gpu

// Products of a mixture of experts: one launch does those of all experts that get a row.
//
// An expert that gets a row has m / touched of them on average, and its product is cut into tiles as one of so many
// rows would be; the launch has the tiles of all (how our own GPU kernels cut it: dculab_gpu/expert_product.hpp). No
// expert's product is split along k.
#pragma once

#include "core/op.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

// The ordinary product that one touched expert does. Precondition: op.groups.count > 0.
[[nodiscard]] Op of_one_expert(const Op& op);

// The launch of one expert's product, for all that are touched.
[[nodiscard]] Launch of_all_experts(Launch launch, const Op& op);

}  // namespace dculab::lower

// How kernels cut products and attention into workgroups (on a CPU: tasks). Libraries': library_tiles.hpp; our own:
//
//   GPU   products: tiles of 128 x 128 (int4: 64 rows; fewer rows when m is small, where each weight is asked for once
//         anyway); a query tile of 64 rows (32 of heads above 160 values) of (token, head of the group); decode as the
//         step asks for it: dculab_gpu/geometry.hpp
//   CPU   each weight is asked for once; a query tile of 128 rows, contexts split every 512 tokens:
//         dculab_cpu/geometry.hpp
#pragma once

#include "core/op.hpp"
#include "core/step_plan.hpp"
#include "lower/attention_walk.hpp"
#include "lower/device.hpp"
#include "lower/kernels.hpp"
#include "lower/matmul.hpp"

namespace dculab::lower {

[[nodiscard]] MatmulTile matmul_tile(const Op& op, const Device& device, const Kernels& kernels);

[[nodiscard]] AttentionTile attention_tile(const Op& op, const StepPlan& step, const Device& device,
                                           const Kernels& kernels);

}  // namespace dculab::lower

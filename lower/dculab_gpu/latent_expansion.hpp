// How our GPU kernels expand latents: a sequence after the other, as many of its heads at a time as kMostExpandedBytes
// hold, piece by piece of kExpandedPiece tokens (latent_tiling.hpp). A piece is gathered from the cache, multiplied,
// and stored as attention of prefill has its K and V, in halves of fixed width; attention reads the heads before the
// next ones are expanded.
#pragma once

#include "core/op.hpp"
#include "core/step_plan.hpp"
#include "lower/launch.hpp"

namespace dculab::lower::dculab_gpu {

// Kernels that MLA's ops launch beside those of other models: to rotate and cache, a third; to expand latents, three
// for each piece; to attend to them, one for each part of a sequence's heads. `step` has the op.
[[nodiscard]] double latent_launches(const Op& op, const StepPlan& step);

// What the kernels before and after the products of an expansion ask for, once the products' own streams are filled in.
void add_expansion(Streams& streams, const Op& op, const StepPlan& step);

}  // namespace dculab::lower::dculab_gpu

// Finds the steps of an engine in the stream of its kernels.
//
// A step plan fixes the order of op kinds: embedding, then per layer norm, matmul, rope_and_cache, attention, matmul,
// norm, matmul, activation, matmul, then norm, matmul; with experts norm, matmul, routing, matmul, activation, matmul,
// combining. No two neighbours are of one kind, so however many kernels an engine uses for an op (partitions and their
// reduction, rotation and cache write, q, k and v apart, split-k and its sum), a run of kernels of one kind is one op,
// and a matmul is told by its place. The embedding and rope_and_cache may be missing: fused into a neighbour, or under
// a name that says nothing; so may the activation behind a kernel that is known to compute it. Whatever serves no op is
// "other".
//
// A match must be a whole step: it may not begin behind a layer or end before one, so a model with fewer layers than
// the one profiled matches nowhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "config/profile/kernel_map.hpp"
#include "config/profile/profile_file.hpp"
#include "core/step_plan.hpp"

namespace dculab::config {

struct FoundStep {
  std::size_t first = 0, last = 0;  // of the op kernels, as indices into the profile's kernels
  bool follows_previous = false;    // no kernel of another step stands between this one and the one before
  std::vector<std::vector<std::size_t>> kernels;  // [plan.ops.size()], of all executions of the op
};

// In order of time. Precondition: the plan's batch is all prefill or all decode.
[[nodiscard]] std::vector<FoundStep> find_steps(std::span<const KernelRecord> kernels, const StepPlan& plan,
                                                std::span<const std::uint8_t> layers,
                                                std::span<const NamedKernels> named = {});

}  // namespace dculab::config

// Mixtures of experts on the CPU (kernels/expert_ops.hpp), with the promises of cpu_kernels.hpp: the bits of a token do
// not depend on which others its experts have.
#pragma once

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/expert_ops.hpp"

namespace dculab::kernels::cpu {

// Throws std::invalid_argument for a rule that gives a token more experts than it can choose from.
void route_tokens(ThreadPool& threads, Workspace& workspace, const RouteTokensArgs& args);

// Each touched expert's product is a matmul() of its own, which all threads share. Its rows of x are copied side by
// side first, into `gathered`, unless they lie so.
void expert_matmul(ThreadPool& threads, Workspace& workspace, Workspace& gathered, const ExpertMatmulArgs& args);

void combine_experts(ThreadPool& threads, const CombineExpertsArgs& args);

}  // namespace dculab::kernels::cpu

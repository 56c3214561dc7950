// The CPU kernels of multi-head latent attention. Bits depend neither on the batch nor on the number of threads.
#pragma once

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/latent_ops.hpp"

namespace dculab::kernels::cpu {

// Preconditions: qk_rope_head_dim is even; the cache is neither kivi4 nor kivi2.
void latent_rope_and_cache(ThreadPool& threads, const LatentRopeArgs& args);
void gather_latents(ThreadPool& threads, const GatherLatentsArgs& args);
void store_expanded(ThreadPool& threads, const StoreExpandedArgs& args);

// Weights are plain floats, FP8 or packed; activations are never rounded. Each weight is read once while there are few
// tokens.
void absorb_k(ThreadPool& threads, Workspace& workspace, const AbsorbArgs& args);
void absorb_v(ThreadPool& threads, Workspace& workspace, const AbsorbArgs& args);

}  // namespace dculab::kernels::cpu

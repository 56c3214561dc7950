// A batch of given lengths that an executor can run: token ids at random, KV blocks scattered over the cache.
#pragma once

#include <random>

#include "core/batch.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// New tokens of the step; KV blocks that its sequences hold. Throw InputError for more than an engine can be built for.
[[nodiscard]] int tokens_of(const Batch& batch);
[[nodiscard]] int blocks_of(const Batch& batch, int block_size);

// New tokens of a sequence that is decoded, at most: what GpuStepLimits::decode_tokens must have room for.
[[nodiscard]] int decode_tokens_of(const Batch& batch);

// Trees become chains: lengths do not say who follows whom. Precondition: blocks_of(batch, block_size) <= num_blocks.
[[nodiscard]] Batch scattered_batch(Batch batch, const ModelShape& model, int block_size, int num_blocks,
                                    std::mt19937_64& random);

}  // namespace dculab::engine

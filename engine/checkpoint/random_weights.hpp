// A model of any shape without a checkpoint: for benchmarks, where shape and dtype matter and values do not.
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

// Random values in shape.dtype (F32, F16 or BF16), with variance 1 / in_features so that activations keep a sane
// scale; norms are 1, biases small. With shape.quantization the layers' matrices are int4 or int8 as the CPU kernels
// pack them, a group size of -1 making each row one group, or FP8 (E4M3) with a scale for every 128 x 128 weights. Each
// matrix repeats a few ten thousand values: memory is filled at the speed of a copy.
[[nodiscard]] ModelWeights random_weights(const ModelShape& shape, std::uint64_t seed);

}  // namespace dculab::engine

// Into how long partitions a GPU's decode attention should cut contexts, by the size of the device.
#pragma once

#include "core/model_shape.hpp"

namespace dculab::engine {

// What kernels::gpu::choose_partition_tokens says for `num_seqs` sequences of at most `longest` tokens when a workgroup
// serves a whole group. 0: not at all.
[[nodiscard]] int filling_partition_tokens(const ModelShape& model, int num_seqs, int longest, int compute_units);

}  // namespace dculab::engine

#include "engine/executors/partition_choice.hpp"

#include "kernels/gpu/attention/paged_attention_tiling.hpp"

namespace dculab::engine {

int filling_partition_tokens(const ModelShape& model, int num_seqs, int longest, int compute_units) {
  return kernels::gpu::choose_partition_tokens(num_seqs, model.num_attention_heads, model.group_size(), longest,
                                               compute_units);
}

}  // namespace dculab::engine

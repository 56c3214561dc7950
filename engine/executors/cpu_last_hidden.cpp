// What a step leaves for those who guess further tokens: the hidden states that the model's head reads.
#include <algorithm>
#include <memory>

#include "engine/executors/cpu_draft_heads.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "engine/executors/plan_walk.hpp"

namespace dculab::engine {

void CpuExecutor::copy_last_hidden(std::span<const int> rows, std::span<float> out) const {
  const auto columns = static_cast<std::size_t>(weights_.shape.hidden_size);
  const std::span normed(buffers_[index(Buffer::normed)]);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::ranges::copy(normed.subspan(static_cast<std::size_t>(rows[i]) * columns, columns),
                      out.begin() + static_cast<std::ptrdiff_t>(i * columns));
}

void CpuExecutor::keep_all_hidden() {
  const bool has_one_sum = std::ranges::all_of(
      weights_.shape.kinds, [](const LayerKind& kind) { return kind.block == BlockKind::sequential; });
  if (weights_.shape.norm != NormKind::rms_norm || !has_one_sum) ModelExecutor::keep_all_hidden();
  keeps_all_hidden_ = true;
}

// As the step's own final norm does with the rows whose logits are wanted; on a copy, since that adds to the residual.
void CpuExecutor::norm_all_hidden() {
  const ModelShape& shape = weights_.shape;
  const auto count = static_cast<std::ptrdiff_t>(inputs_.num_tokens()) * shape.hidden_size;
  const float* const residual = values(Buffer::residual);
  all_residual_.assign(residual, residual + count);
  all_hidden_.resize(static_cast<std::size_t>(count));
  kernels::cpu::rms_norm(threads_, {.x = values(Buffer::projected),
                                    .residual = all_residual_.data(),
                                    .weight = weights_.outer[WeightSlot::final_norm].weights[0],
                                    .out = all_hidden_.data(),
                                    .num_tokens = inputs_.num_tokens(),
                                    .width = shape.hidden_size,
                                    .epsilon = static_cast<float>(shape.norm_eps),
                                    .weight_offset = shape.unit_offset_norms ? 1.0F : 0.0F});
}

std::unique_ptr<DraftHeads> CpuExecutor::make_draft_heads(const MedusaWeights& weights) {
  return std::make_unique<CpuDraftHeads>(weights, threads_);
}

}  // namespace dculab::engine

#include "engine/regroup/head_calibration.hpp"

#include <string>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

void require_finite(const std::vector<HeadStatistics>& statistics) {
  for (std::size_t layer = 0; layer < statistics.size(); ++layer)
    if (!statistics[layer].is_finite())
      throw InputError("the calibration text makes the heads of layer " + std::to_string(layer) +
                       " NaN or infinite; the weights are damaged");
}

}  // namespace

std::vector<HeadStatistics> observe_heads(const ModelWeights& weights, std::span<const TokenId> tokens,
                                          const TextRun& run, SecondMoments moments) {
  std::vector<HeadStatistics> statistics(weights.layers.size(), HeadStatistics(weights.shape, moments));
  observe_text(weights, tokens, run, [&](const Op& op, int layer, std::span<const float> input) {
    HeadStatistics& heads = statistics[static_cast<std::size_t>(layer)];
    if (op.kind == OpKind::attention_prefill) heads.add_qkv(input);
    if (op.weight == WeightSlot::o_proj) heads.add_attention(input);
  });
  require_finite(statistics);
  return statistics;
}

}  // namespace dculab::engine

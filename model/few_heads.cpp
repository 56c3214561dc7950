#include "model/few_heads.hpp"

#include <algorithm>
#include <bit>

namespace dculab {
namespace {

constexpr int kMostTokensPerBlock = 256;

[[nodiscard]] bool has_plain_heads(const ModelShape& model) {
  const auto is_plain = [](const LayerKind& kind) { return kind.has_kv_heads() && !kind.gqa().shares_kv; };
  return std::ranges::all_of(model.kinds, is_plain) && !model.has_unequal_heads();
}

}  // namespace

std::vector<std::string> few_heads_problems(const ModelShape& many, const ModelShape& few,
                                            const EngineOptions& options) {
  if (!has_plain_heads(many) || !has_plain_heads(few))
    return {"every layer needs K and V of its own, with equally many heads in all layers"};
  if (many.num_layers() != few.num_layers() || many.hidden_size != few.hidden_size ||
      many.vocab_size != few.vocab_size || many.heads().head_dim != few.heads().head_dim ||
      many.heads().num_attention_heads != few.heads().num_attention_heads)
    return {few.name + " differs from " + many.name + " in more than its KV heads"};
  if (many.layer_format() != few.layer_format()) return {few.name + " has weights of another format than " + many.name};
  const int of_many = many.heads().num_key_value_heads, of_few = few.heads().num_key_value_heads;
  if (of_few >= of_many)
    return {std::to_string(of_few) + " KV heads are not fewer than the model's " + std::to_string(of_many)};
  const auto ratio = static_cast<unsigned>(of_many / of_few);
  if (of_many % of_few != 0 || !std::has_single_bit(ratio))
    return {"the model's " + std::to_string(of_many) + " KV heads must be a power of two times the few, not " +
            std::to_string(of_few) + ": blocks of as many bytes hold as many times more tokens"};
  if (options.block_size * static_cast<int>(ratio) > kMostTokensPerBlock)
    return {"blocks of " + std::to_string(options.block_size) + " tokens would hold " +
            std::to_string(options.block_size * static_cast<int>(ratio)) +
            " with few heads, more than 256; lower kv_cache.block_size"};
  return {};
}

int few_tokens_per_slot(const ModelShape& many, const ModelShape& few) {
  return many.heads().num_key_value_heads / few.heads().num_key_value_heads;
}

EngineOptions options_of_few(EngineOptions options, const ModelShape& many, const ModelShape& few) {
  options.block_size *= few_tokens_per_slot(many, few);
  return options;
}

// Footprints are linear in KV heads: many - few is what the merged ones have less, ratio - 1 times what is left.
Bytes few_heads_footprint(const ModelShape& many, const FewHeads& few, WeightFormat layers) {
  const Bytes whole = weight_footprint(few.model, layers);
  if (few.weights == FewWeights::all) return whole;
  return (weight_footprint(many, layers) - whole) / (few_tokens_per_slot(many, few.model) - 1.0);
}

}  // namespace dculab

// Are the logits of a KIVI cache those of an F16 cache whose older tokens hold what KIVI's formulas leave of them? The
// quantizer here is written from the paper (arXiv:2402.02750, section 3.2), not from the kernels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "core/kv/kivi.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "kernels/number_format.hpp"
#include "tests/engine/support/shipped_text.hpp"
#include "tests/engine/support/stepper.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kGroup = 32;  // tokens of a group of keys, channels of a group of values
constexpr int kResidual = 128;      // newest tokens in F16: the default
constexpr int kScoredTokens = kSanitized ? 180 : 260;

// What is left of kGroup F16 values, `stride` apart.
void quantize_group(std::uint16_t* values, std::size_t stride, int levels) {
  float low = INFINITY, high = -INFINITY;
  for (std::size_t i = 0; i < kGroup; ++i) {
    const float value = kernels::f32_from_f16(values[i * stride]);
    low = std::min(low, value), high = std::max(high, value);
  }
  const float zero = rounded_to_f16(low), step = rounded_to_f16((high - low) / static_cast<float>(levels - 1));
  for (std::size_t i = 0; i < kGroup; ++i) {
    std::uint16_t& value = values[i * stride];
    const float code = step == 0 ? 0 : std::nearbyint((kernels::f32_from_f16(value) - zero) / step);
    value = kernels::f16_from_f32(zero + std::clamp(code, 0.0F, static_cast<float>(levels - 1)) * step);
  }
}

// One block of kGroup tokens in all layers: K, then V of each layer, [KV heads, kGroup, head_dim] of F16.
void quantize_block(ModelExecutor& executor, BlockId block, int levels) {
  const auto heads = static_cast<std::size_t>(executor.shape().heads().num_key_value_heads);
  const auto width = static_cast<std::size_t>(executor.shape().heads().head_dim);
  std::vector<std::byte> bytes(executor.bytes_per_block());
  std::vector<std::uint16_t> values(bytes.size() / sizeof(std::uint16_t));
  executor.read_blocks({&block, 1}, bytes);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  for (std::uint16_t* layer = values.data(); layer != values.data() + values.size();) {
    for (std::size_t head = 0; head < heads; ++head, layer += kGroup * width)  // keys, by channel
      for (std::size_t channel = 0; channel < width; ++channel) quantize_group(layer + channel, width, levels);
    for (std::size_t head = 0; head < heads; ++head, layer += kGroup * width)  // values, by token
      for (std::size_t first = 0; first < kGroup * width; first += kGroup) quantize_group(layer + first, 1, levels);
  }
  std::memcpy(bytes.data(), values.data(), bytes.size());
  executor.write_blocks({&block, 1}, bytes);
}

struct KiviErrors {
  double of_formulas = 0;  // the largest of any step: against the F16 cache that holds what the formulas leave
  double of_plain = 0;     // against an F16 cache that keeps everything
};

KiviErrors decode(const ModelWeights& weights, Dtype dtype, int levels, const std::vector<TokenId>& tokens) {
  Stepper kivi(weights, {.kv_dtype = dtype});
  Stepper formulas(weights, {.block_size = static_cast<int>(kGroup), .kv_dtype = Dtype::f16});
  Stepper plain(weights, {.kv_dtype = Dtype::f16});
  KiviErrors errors;
  int quantized = 0;
  for (int context = 1; context <= static_cast<int>(tokens.size()); ++context) {
    const int wanted = context <= kResidual ? 0 : (context - kResidual + 31) / 32 * 32;
    for (; quantized < wanted; quantized += static_cast<int>(kGroup))
      quantize_block(formulas.executor(), formulas.blocks(0)[static_cast<std::size_t>(quantized) / kGroup], levels);
    const std::vector<Feed> feed{
        {0, context == 1 ? Phase::prefill : Phase::decode, {tokens[static_cast<std::size_t>(context) - 1]}}};
    const Logits logits = kivi.step(feed)[0];
    errors.of_formulas = std::max(errors.of_formulas, relative_error(logits, formulas.step(feed)[0]));
    errors.of_plain = std::max(errors.of_plain, relative_error(logits, plain.step(feed)[0]));
  }
  return errors;
}

}  // namespace

TEST_CASE("the logits of a KIVI cache are those of what the paper's formulas leave of older tokens", "[once]") {
  const ModelWeights weights = load_weights(kShippedModel);
  const std::vector<TokenId> tokens = shipped_tokens("eval/held-out.txt", kScoredTokens);
  for (const auto& [dtype, levels] : {std::pair{Dtype::kivi4, 16}, {Dtype::kivi2, 4}}) {
    const KiviErrors errors = decode(weights, dtype, levels, tokens);
    INFO(name(dtype) << ": " << errors.of_formulas << ", from what is not quantized " << errors.of_plain);
    // The F16 cache rounds zero + code * step to 11 bits, which the KIVI kernels do not: 2^-12 of each value.
    CHECK(errors.of_formulas < 0x1p-10);
    CHECK(errors.of_plain > 20 * errors.of_formulas);
  }
}

}  // namespace dculab::engine

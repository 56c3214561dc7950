// The model that regrouping is tested on, and whether it still computes the same.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/checkpoint/model_weights.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/engine/support/stepper.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {

inline const GoldenModel& mha_model() {
  static const GoldenModel model("mha");  // 4 heads, 2 layers, F32
  return model;
}

inline std::vector<Logits> logits_of(const ModelWeights& weights) {
  Stepper stepper(weights);
  std::vector<Feed> feeds;
  for (const GoldenPrompt& prompt : mha_model().prompts())
    feeds.push_back({static_cast<SequenceId>(feeds.size()), Phase::prefill, prompt.tokens});
  return stepper.step(feeds);
}

inline void require_near(const std::vector<Logits>& actual, const std::vector<Logits>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t row = 0; row < actual.size(); ++row)
    for (std::size_t i = 0; i < actual[row].size(); ++i)
      REQUIRE_THAT(actual[row][i], WithinAbs(expected[row][i], 2e-5));  // F32 sums in another order
}

// All prompts, again and again: enough to compare heads on.
inline std::vector<TokenId> some_text() {
  std::vector<TokenId> text;
  while (text.size() < 200)
    for (const GoldenPrompt& prompt : mha_model().prompts())
      text.insert(text.end(), prompt.tokens.begin(), prompt.tokens.end());
  return text;
}

inline std::byte* writable(const kernels::WeightView& view) {  // a loaded copy of the file, which only the test has
  return static_cast<std::byte*>(const_cast<void*>(view.data));
}

enum class Parts : std::uint8_t { query, all };

// Gives head `to` of every layer the rows of Q, or of Q, K and V, that `from` has, with their biases.
inline void copy_rows(ModelWeights& weights, std::size_t from, std::size_t to, Parts parts) {
  const auto rows = static_cast<std::size_t>(weights.shape.heads().head_dim);
  for (const WeightSlots& layer : weights.layers)
    for (std::size_t part = kQ; part <= (parts == Parts::all ? kV : kQ); ++part) {
      const SlotWeights& slot = layer[WeightSlot::qkv_proj];
      const auto copy = [&](const kernels::WeightView& view, std::size_t columns) {
        const std::size_t bytes = rows * columns * static_cast<std::size_t>(bits(view.dtype)) / 8;
        std::memcpy(writable(view) + to * bytes, writable(view) + from * bytes, bytes);
      };
      copy(slot.weights[part], static_cast<std::size_t>(weights.shape.hidden_size));
      if (slot.biases[part].data != nullptr) copy(slot.biases[part], 1);
    }
}

}  // namespace dculab::engine

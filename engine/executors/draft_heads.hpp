// Heads beside a model that guess tokens from its last hidden states, on the device that the model runs on.
#pragma once

#include <span>

#include "core/batch.hpp"

namespace dculab::engine {

class DraftHeads {
 public:
  virtual ~DraftHeads() = default;

  // The `width` likeliest tokens of each head after each row of `hidden` [rows, hidden_size], what lm_head reads:
  // [rows, num_heads, width], the likeliest first, of equal ones the lower row of the head. Valid until the next call.
  // Precondition: width is at most most_guesses().
  [[nodiscard]] virtual std::span<const TokenId> guess(std::span<const float> hidden, int width) = 0;

  [[nodiscard]] virtual int num_heads() const = 0;
  [[nodiscard]] virtual int most_guesses() const = 0;
};

}  // namespace dculab::engine

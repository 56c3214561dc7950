// Perplexity of a text, and how far a model's predictions of it lie from a reference model's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "engine/evaluate/likelihood.hpp"
#include "engine/evaluate/token_scorer.hpp"

namespace dculab::engine {

// Mean of -log p(token) in nats, over a number of tokens.
struct Loss {
  std::int64_t num_tokens = 0;
  double sum = 0;

  void add(double log_probability) {
    ++num_tokens;
    sum -= log_probability;
  }
  [[nodiscard]] double mean() const { return sum / static_cast<double>(num_tokens); }
  [[nodiscard]] double perplexity() const;
};

// The loss of the tokens that have at least `begin` and fewer than `end` tokens before them in their window.
struct PositionLoss {
  int begin = 0;
  int end = 0;
  Loss loss;
};

struct TextEvaluation {
  Loss loss;
  std::vector<PositionLoss> by_position;  // [1, 64), [64, 128), ..., [512, 1024), [1024, 2048), [2048, 3072), ...
  std::optional<Agreement> agreement;     // with the reference, where there is one
};

struct TextEvaluationOptions {
  int window = 1024;             // tokens; the text is cut into windows without overlap, each judged on its own
  int windows_at_once = 8;       // when streamed
  double most_logits = 1 << 27;  // values of the reference kept at a time; fewer windows at once where they are large
};

// Share of the text done, 0 to 1.
using EvaluationProgress = std::function<void(double share)>;

// The windows are those of scripts/model/evaluate.py: within a window each token but the first is predicted from all
// before it. `reference` may be null. Precondition: ids.size() >= 2, options.window >= 2.
[[nodiscard]] TextEvaluation evaluate_text(TokenScorer& scorer, TokenScorer* reference, std::span<const TokenId> ids,
                                           const TextEvaluationOptions& options,
                                           const EvaluationProgress& progress = {});

}  // namespace dculab::engine

#include "tests/engine/support/text_scores.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "core/serving_loop.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {
namespace {

double log_probability(std::span<const float> logits, TokenId token) {
  const double largest = *std::ranges::max_element(logits);
  double total = 0;
  for (const float logit : logits) total += std::exp(logit - largest);
  return logits[static_cast<std::size_t>(token)] - largest - std::log(total);
}

// Continues each sequence with its own text.
class TextsThemselves final : public TokenSource {
 public:
  TextsThemselves(const ModelExecutor& executor, std::span<const std::vector<TokenId>> texts)
      : executor_(executor), texts_(texts), scores_(texts.size()) {}

  TokenId next_token(const Sequence& sequence, int logits_row) override {
    const auto index = static_cast<std::size_t>(sequence.request.id);
    const TokenId token = texts_[index][static_cast<std::size_t>(sequence.num_tokens())];
    scores_[index].push_back(log_probability(executor_.logits(logits_row), token));
    return token;
  }

  [[nodiscard]] TextScores take() { return std::move(scores_); }

 private:
  const ModelExecutor& executor_;
  std::span<const std::vector<TokenId>> texts_;
  TextScores scores_;
};

}  // namespace

std::vector<TokenId> random_text(int count, unsigned seed) {
  std::vector<TokenId> tokens;
  std::uint32_t state = seed;
  for (int i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>((state = state * 1664525U + 1013904223U) >> 16) % 96);
  return tokens;
}

double largest_difference(std::span<const double> a, std::span<const double> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

TextScores token_log_probabilities(ModelExecutor& executor, const EngineOptions& options,
                                   std::span<const std::vector<TokenId>> texts, int num_prompt_tokens) {
  Scheduler scheduler(options, {.num_blocks = executor.kv_cache().num_blocks,
                                .max_position_embeddings = executor.shape().max_position_embeddings});
  TextsThemselves tokens(executor, texts);
  VirtualClock clock;
  ServingLoop loop({planner_of(executor.shape(), options), scheduler, executor, tokens, clock});
  for (std::size_t index = 0; index < texts.size(); ++index) {
    const std::vector<TokenId>& text = texts[index];
    Request request{.id = static_cast<SequenceId>(index),
                    .prompt_token_ids = {text.begin(), text.begin() + num_prompt_tokens},
                    .max_tokens = static_cast<int>(text.size()) - num_prompt_tokens,
                    .eos = EosHandling::ignore};
    if (const auto reason = loop.submit(std::move(request)))
      throw InputError("text " + std::to_string(index + 1) + ": " + *reason);
  }
  loop.run();
  return tokens.take();
}

}  // namespace dculab::engine

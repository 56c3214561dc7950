// Lets a model predict given texts token by token, and shows the logits of each prediction.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "engine/generate/generator.hpp"

namespace dculab::engine {

// Tokens from index `num_given` on are predicted, each from all before it.
// Preconditions: 1 <= num_given < tokens.size().
struct ScoredText {
  std::vector<TokenId> tokens;
  int num_given = 1;
  // Streamed, of a cache whose decodes load a part of it: those of the given tokens that come by prefill, which sees
  // all. The others one by one, as if they had been generated. 0: all.
  int num_prefilled = 0;

  [[nodiscard]] int num_predicted() const { return static_cast<int>(tokens.size()) - num_given; }
};

// Exact arithmetic gives the same either way. What differs is what the cache does to a token's own chunk: streamed is
// what a user who generates text gets.
enum class ScoringMode : std::uint8_t {
  chunked,  // a chunk of a text in each step, as in prefill; a prefix shared with the text before is not computed again
  streamed,  // what is given by prefill, then one token of each text in each step, as in decode
};

// `logits` predict texts[text].tokens[token]. In order within a text; streamed, several texts take turns.
using OnPrediction = std::function<void(std::size_t text, int token, std::span<const float> logits)>;

class TokenScorer {
 public:
  // `generator` must outlive the scorer.
  TokenScorer(Generator& generator, ScoringMode mode);

  // Throws InputError for a text that the engine can never serve: longer than the context.
  void score(std::span<const ScoredText> texts, const OnPrediction& on_prediction);

  [[nodiscard]] Generator& generator() { return generator_; }
  [[nodiscard]] ScoringMode mode() const { return mode_; }

 private:
  void score_chunked(std::size_t index, const ScoredText& text, const OnPrediction& on_prediction);
  void score_streamed(std::span<const ScoredText> texts, const OnPrediction& on_prediction);
  void run_chunk(const ScoredText& text, int begin, int end, int num_logits);

  Generator& generator_;
  ScoringMode mode_;
  std::vector<TokenId> cached_;  // chunked: the tokens whose K and V are in the cache, from slot 0 on
};

// KV blocks that scoring `num_texts` texts of `num_tokens` at the same time needs.
[[nodiscard]] int blocks_for_scoring(int num_texts, int num_tokens, int block_size);

}  // namespace dculab::engine

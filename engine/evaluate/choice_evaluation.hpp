// Multiple choice: which answer a model finds likeliest.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/evaluate/text_evaluation.hpp"
#include "engine/evaluate/token_scorer.hpp"

namespace dculab::engine {

// Each choice is judged as what follows the prompt after a space. Precondition: 0 <= answer < choices.size().
struct ChoiceItem {
  std::string prompt;
  std::size_t context_bytes = 0;  // of the prompt, before the question
  std::vector<std::string> choices;
  int answer = 0;  // index of the right choice
};

// Index of the choice that is likeliest by sum of log probabilities ("acc" of lm-evaluation-harness), and by sum per
// character of the choice ("acc_norm" there, which divides by bytes); the first of equal ones.
struct Chosen {
  int by_sum = 0;
  int per_character = 0;
  std::vector<double> log_probabilities;  // [choices], of a choice's tokens, summed
};

struct ChoiceEvaluation {
  int num_items = 0;
  int right = 0;
  int right_per_character = 0;
};

// Throws InputError for an item that is longer than the context.
[[nodiscard]] Chosen choose(TokenScorer& scorer, const ChoiceItem& item);

[[nodiscard]] ChoiceEvaluation evaluate_choices(TokenScorer& scorer, std::span<const ChoiceItem> items,
                                                const EvaluationProgress& progress = {});

}  // namespace dculab::engine

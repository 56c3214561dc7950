#include "engine/evaluate/choice_evaluation.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

int characters(std::string_view text) {
  return static_cast<int>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// Where the prompt's tokens end is where the tokens of prompt and choice together stop being those of the prompt alone:
// a tokenizer may treat the beginning of a text in its own way, so the choice is never encoded by itself.
ScoredText with_choice(const Tokenizer& tokenizer, const ChoiceItem& item, const std::string& choice) {
  ScoredText text{.tokens = tokenizer.encode(item.prompt + choice, SpecialTokens::add), .num_given = 0};
  const auto shared_with = [&](const std::string& beginning) {
    const std::vector<TokenId> alone = tokenizer.encode(beginning, SpecialTokens::add);
    return static_cast<int>(std::ranges::mismatch(alone, text.tokens).in1 - alone.begin());
  };
  text.num_given = std::min(shared_with(item.prompt), static_cast<int>(text.tokens.size()) - 1);
  if (text.num_given < 1) throw InputError("the question has no tokens of its own");
  const int of_context = shared_with(item.prompt.substr(0, item.context_bytes));
  text.num_prefilled = std::clamp(of_context, 1, text.num_given);
  return text;
}

template <class Value>
int index_of_largest(const std::vector<Value>& values) {
  return static_cast<int>(std::ranges::max_element(values) - values.begin());
}

}  // namespace

Chosen choose(TokenScorer& scorer, const ChoiceItem& item) {
  std::vector<ScoredText> texts;
  for (const std::string& choice : item.choices)
    texts.push_back(with_choice(scorer.generator().tokenizer(), item, " " + choice));
  Chosen chosen;
  chosen.log_probabilities.assign(item.choices.size(), 0.0);
  scorer.score(texts, [&](std::size_t text, int token, std::span<const float> logits) {
    chosen.log_probabilities[text] += log_probability(logits, texts[text].tokens[static_cast<std::size_t>(token)]);
  });
  std::vector<double> per_character;
  for (std::size_t index = 0; index < item.choices.size(); ++index)
    per_character.push_back(chosen.log_probabilities[index] / characters(" " + item.choices[index]));
  chosen.by_sum = index_of_largest(chosen.log_probabilities);
  chosen.per_character = index_of_largest(per_character);
  return chosen;
}

ChoiceEvaluation evaluate_choices(TokenScorer& scorer, std::span<const ChoiceItem> items,
                                  const EvaluationProgress& progress) {
  ChoiceEvaluation result;
  for (const ChoiceItem& item : items) {
    const Chosen chosen = choose(scorer, item);
    ++result.num_items;
    result.right += chosen.by_sum == item.answer ? 1 : 0;
    result.right_per_character += chosen.per_character == item.answer ? 1 : 0;
    if (progress) progress(static_cast<double>(result.num_items) / static_cast<double>(items.size()));
  }
  return result;
}

}  // namespace dculab::engine

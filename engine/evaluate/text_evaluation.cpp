#include "engine/evaluate/text_evaluation.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

constexpr int kFirstPositions = 64;    // end of the first stretch of by_position; each next ends at twice that,
constexpr int kLongestStretch = 1024;  // but is no longer than this

std::vector<ScoredText> windows_of(std::span<const TokenId> ids, int window) {
  std::vector<ScoredText> windows;
  const auto size = static_cast<std::size_t>(window);
  for (std::size_t begin = 0; begin + 1 < ids.size(); begin += size) {
    const auto part = ids.subspan(begin, std::min(size, ids.size() - begin));
    windows.push_back({.tokens = {part.begin(), part.end()}, .num_given = 1});
  }
  return windows;
}

void add_at(std::vector<PositionLoss>& stretches, int position, double log_probability) {
  while (stretches.empty() || position >= stretches.back().end) {
    const int begin = stretches.empty() ? 1 : stretches.back().end;
    stretches.push_back({.begin = begin,
                         .end = stretches.empty() ? kFirstPositions : begin + std::min(begin, kLongestStretch),
                         .loss = {}});
  }
  const auto found = std::ranges::find_if(stretches, [&](const PositionLoss& each) { return position < each.end; });
  found->loss.add(log_probability);
}

// The reference's log probabilities of a few windows, which the model's rows are held against.
class ReferenceRows {
 public:
  void compute(TokenScorer& reference, std::span<const ScoredText> windows) {
    const auto vocabulary = static_cast<std::size_t>(reference.generator().shape().vocab_size);
    vocabulary_ = vocabulary;
    first_row_.clear();
    std::size_t rows = 0;
    for (const ScoredText& window : windows) {
      first_row_.push_back(rows);
      rows += window.tokens.size();
    }
    values_.resize(rows * vocabulary);
    reference.score(windows, [this](std::size_t text, int token, std::span<const float> logits) {
      log_softmax(logits, row(text, token));
    });
  }

  [[nodiscard]] std::span<float> row(std::size_t text, int token) {
    const std::size_t index = first_row_[text] + static_cast<std::size_t>(token);
    return std::span(values_).subspan(index * vocabulary_, vocabulary_);
  }

 private:
  std::size_t vocabulary_ = 0;
  std::vector<std::size_t> first_row_;
  std::vector<float> values_;  // [tokens of all windows, vocabulary]
};

void require_same_vocabulary(TokenScorer& scorer, TokenScorer& reference) {
  const int mine = scorer.generator().shape().vocab_size, other = reference.generator().shape().vocab_size;
  if (mine != other)
    throw InputError("the reference has a vocabulary of " + std::to_string(other) + " tokens, the model one of " +
                     std::to_string(mine) + "; their predictions cannot be compared");
}

std::size_t group_size(const TokenScorer& scorer, const TextEvaluationOptions& options, bool keeps_rows,
                       int vocabulary) {
  if (scorer.mode() == ScoringMode::chunked) return 1;
  if (!keeps_rows) return static_cast<std::size_t>(options.windows_at_once);
  const double fit = options.most_logits / (static_cast<double>(options.window) * vocabulary);
  return static_cast<std::size_t>(std::clamp(fit, 1.0, static_cast<double>(options.windows_at_once)));
}

}  // namespace

double Loss::perplexity() const { return std::exp(mean()); }

TextEvaluation evaluate_text(TokenScorer& scorer, TokenScorer* reference, std::span<const TokenId> ids,
                             const TextEvaluationOptions& options, const EvaluationProgress& progress) {
  TextEvaluation result;
  if (reference != nullptr) {
    require_same_vocabulary(scorer, *reference);
    result.agreement.emplace();
  }
  const std::vector<ScoredText> windows = windows_of(ids, options.window);
  const std::size_t at_once = group_size(scorer, options, reference != nullptr, scorer.generator().shape().vocab_size);
  ReferenceRows rows;
  for (std::size_t first = 0; first < windows.size(); first += at_once) {
    const auto group = std::span(windows).subspan(first, std::min(at_once, windows.size() - first));
    if (reference != nullptr) rows.compute(*reference, group);
    scorer.score(group, [&](std::size_t text, int token, std::span<const float> logits) {
      const double score = log_probability(logits, group[text].tokens[static_cast<std::size_t>(token)]);
      result.loss.add(score);
      add_at(result.by_position, token, score);
      if (reference != nullptr) result.agreement->add(rows.row(text, token), logits);
    });
    if (progress) progress(static_cast<double>(first + group.size()) / static_cast<double>(windows.size()));
  }
  return result;
}

}  // namespace dculab::engine

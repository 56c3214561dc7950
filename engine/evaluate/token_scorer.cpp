#include "engine/evaluate/token_scorer.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "core/scheduler.hpp"
#include "core/serving_loop.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {
namespace {

constexpr int kChunkTokens = 256;  // bounds the memory of the logits

// Says what the text says, after showing what the model would have said.
class GivenTokens final : public TokenSource {
 public:
  GivenTokens(const ModelExecutor& executor, std::span<const ScoredText> texts, const OnPrediction& on_prediction)
      : executor_(executor), texts_(texts), on_prediction_(on_prediction) {}

  TokenId next_token(const Sequence& sequence, int logits_row) override {
    const auto text = static_cast<std::size_t>(sequence.request.id);
    if (sequence.num_tokens() >= texts_[text].num_given)
      on_prediction_(text, sequence.num_tokens(), executor_.logits(logits_row));
    return texts_[text].tokens[static_cast<std::size_t>(sequence.num_tokens())];
  }

 private:
  const ModelExecutor& executor_;
  std::span<const ScoredText> texts_;
  const OnPrediction& on_prediction_;
};

// KIVI quantises keys in groups of tokens, which cannot be taken back: a text starts with an empty cache.
bool can_rewind(Dtype kv_cache_dtype) { return !quantizes_together(kv_cache_dtype); }

// Choices of a question begin alike: where a cache lets them, they share what has been computed, which changes no bit.
EngineOptions with_shared_prefixes(const EngineOptions& options, const ModelShape& shape) {
  EngineOptions sharing = options;
  sharing.enable_prefix_caching = true;
  return problems(sharing).empty() && problems(sharing, shape).empty() ? sharing : options;
}

int common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<int>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

int blocks_for_scoring(int num_texts, int num_tokens, int block_size) {
  constexpr int kSpare = 4;  // the scheduler's watermark keeps about 1 % free
  const int blocks = num_texts * ((num_tokens + block_size - 1) / block_size);
  return blocks + blocks / 50 + kSpare;
}

TokenScorer::TokenScorer(Generator& generator, ScoringMode mode) : generator_(generator), mode_(mode) {
  const RetentionPolicy policy = generator.engine_options().kv_retention.policy;
  if (mode == ScoringMode::chunked && differs_in_decodes(policy))
    throw InputError("kv_retention " + std::string(name(policy)) +
                     " is judged token by token; scoring must be streamed");
}

void TokenScorer::score(std::span<const ScoredText> texts, const OnPrediction& on_prediction) {
  if (mode_ == ScoringMode::streamed) return score_streamed(texts, on_prediction);
  for (std::size_t index = 0; index < texts.size(); ++index) score_chunked(index, texts[index], on_prediction);
}

void TokenScorer::score_chunked(std::size_t index, const ScoredText& text, const OnPrediction& on_prediction) {
  const EngineOptions& options = generator_.engine_options();
  const int num_inputs = static_cast<int>(text.tokens.size()) - 1;  // the last token is only predicted
  if (const int longest = generator_.shape().max_position_embeddings; num_inputs > longest)
    throw InputError("a text of " + std::to_string(text.tokens.size()) + " tokens is longer than " +
                     "max_position_embeddings (" + std::to_string(longest) + ") and its prediction");
  const int chunk = std::min({kChunkTokens, options.max_num_batched_tokens, options.max_num_seqs});
  const int first_logits = text.num_given - 1;  // the input whose logits predict the first token
  const int reused = can_rewind(options.kv_cache_dtype) ? common_prefix(text.tokens, cached_) : 0;
  for (int begin = std::min(reused, first_logits); begin < num_inputs;) {
    const int end = std::min(begin + chunk, num_inputs);
    const int num_logits = std::clamp(end - first_logits, 0, end - begin);
    run_chunk(text, begin, end, num_logits);
    for (int row = 0; row < num_logits; ++row)
      on_prediction(index, end - num_logits + row + 1, generator_.executor().logits(row));
    begin = end;
  }
  cached_.assign(text.tokens.begin(), text.tokens.begin() + num_inputs);
}

void TokenScorer::run_chunk(const ScoredText& text, int begin, int end, int num_logits) {
  Batch batch;
  batch.sequences.push_back({.id = 0,
                             .phase = Phase::prefill,
                             .num_computed_tokens = begin,
                             .num_new_tokens = end - begin,
                             .num_logits = num_logits});
  batch.token_ids.assign(text.tokens.begin() + begin, text.tokens.begin() + end);
  const int block_size = generator_.engine_options().block_size;
  std::vector<BlockId> blocks(static_cast<std::size_t>((end + block_size - 1) / block_size));
  std::iota(blocks.begin(), blocks.end(), 0);
  batch.block_tables.push_back(std::move(blocks));
  (void)generator_.executor().run(
      plan_step(generator_.executor().planned_model(), generator_.engine_options(), std::move(batch)));
}

void TokenScorer::score_streamed(std::span<const ScoredText> texts, const OnPrediction& on_prediction) {
  const ModelShape& shape = generator_.shape();
  const EngineOptions options = with_shared_prefixes(generator_.undrafted_options(), shape);
  Scheduler scheduler(options, {.num_blocks = generator_.executor().kv_cache().num_blocks,
                                .max_position_embeddings = shape.max_position_embeddings});
  GivenTokens tokens(generator_.executor(), texts, on_prediction);
  VirtualClock clock;
  ServingLoop loop(
      {planner_of(generator_.executor().planned_model(), options), scheduler, generator_.executor(), tokens, clock});
  for (std::size_t index = 0; index < texts.size(); ++index) {
    const ScoredText& text = texts[index];
    const bool splits = kv_policy(options.kv_retention.policy).has_budget && text.num_prefilled > 0;
    const int prefilled = splits ? text.num_prefilled : text.num_given;
    const auto refusal = loop.submit({.id = static_cast<SequenceId>(index),
                                      .prompt_token_ids = {text.tokens.begin(), text.tokens.begin() + prefilled},
                                      .max_tokens = static_cast<int>(text.tokens.size()) - prefilled,
                                      .eos = EosHandling::ignore});
    if (refusal) throw InputError(*refusal);
  }
  loop.run();
}

}  // namespace dculab::engine

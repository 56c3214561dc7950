// Sampled texts with drafts, through the whole serving loop, are distributed as the model's logits say.
//
// Few contexts are reached: a prompt, and top_k tokens after each. What may follow each of them is computed once, from
// the logits that the model has for it alone. Of all sampled tokens that a draft may have had a guess for:
//
//   chi-squared   the sum over contexts of (count - expected)^2 / expected; each context's expected counts add up to
//                 its own number of tokens, so it has top_k - 1 degrees of freedom
//   z of a rank   (tokens that have the rank - sum of p) / sqrt(sum of p (1 - p)), p the probability of that rank in a
//                 token's context: what a rule that prefers the probable, or the improbable, cannot hide in few
//                 contexts
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "engine/checkpoint/medusa_checkpoint.hpp"
#include "engine/evaluate/token_scorer.hpp"
#include "tests/engine/support/drafting_generators.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

constexpr int kTopK = 3, kTextTokens = 4;  // of a text; the first comes from the prompt's own step, without a draft
constexpr double kTemperature = 1.5;

// What may follow a context, the most probable first.
struct Context {
  std::array<TokenId, kTopK> tokens{};
  std::array<double, kTopK> probabilities{}, counts{};

  [[nodiscard]] double visits() const { return std::accumulate(counts.begin(), counts.end(), 0.0); }
};
using Contexts = std::map<std::vector<TokenId>, Context>;  // by the tokens after the prompt

// Steps are small: threads would wait for each other more than they compute.
GeneratorOptions on_one_thread() {
  GeneratorOptions options = engine_options();
  options.num_threads = 1;
  return options;
}

TextRequest sampled_request(std::uint64_t seed) {
  return {.prompt = "The",
          .max_tokens = kTextTokens,
          .sampling = {.temperature = kTemperature, .top_k = kTopK, .seed = seed},
          .eos = EosHandling::ignore};
}

Context context_of(std::span<const float> logits) {
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](TokenId token) { return static_cast<double>(logits[static_cast<std::size_t>(token)]); };
  std::ranges::partial_sort(order, order.begin() + kTopK, std::ranges::greater(), logit);
  Context context;
  std::copy_n(order.begin(), kTopK, context.tokens.begin());
  double sum = 0;
  for (std::size_t rank = 0; rank < kTopK; ++rank)
    sum += context.probabilities[rank] = std::exp((logit(order[rank]) - logit(order[0])) / kTemperature);
  for (double& probability : context.probabilities) probability /= sum;
  return context;
}

// All that texts can reach, from the model alone.
Contexts contexts_of_model() {
  Generator generator(kTarget, on_one_thread());
  const std::vector<TextRequest> request{sampled_request(0)};
  const std::vector<TokenId> prompt = generator.generate(request).completions[0].prompt_token_ids;
  TokenScorer scorer(generator, ScoringMode::chunked);
  Contexts contexts;
  std::vector<std::vector<TokenId>> level(1);
  for (int length = 0; length < kTextTokens; ++length) {
    std::vector<ScoredText> texts;
    for (const std::vector<TokenId>& path : level) {
      ScoredText& text = texts.emplace_back(ScoredText{prompt});
      text.tokens.insert(text.tokens.end(), path.begin(), path.end());
      text.num_given = static_cast<int>(text.tokens.size());
      text.tokens.push_back(0);  // whatever is predicted
    }
    std::vector<std::vector<TokenId>> next;
    scorer.score(texts, [&](std::size_t text, int, std::span<const float> logits) {
      const Context& context = contexts[level[text]] = context_of(logits);
      for (const TokenId token : context.tokens) (next.emplace_back(level[text])).push_back(token);
    });
    level = std::move(next);
  }
  return contexts;
}

// Adds what texts of different seeds have after their first token.
DraftCounts count_tokens(Contexts& contexts, GeneratorOptions options, int texts, std::uint64_t first_seed) {
  options.engine.max_num_seqs = 128;
  options.engine.block_size = 4;
  options.engine.enable_prefix_caching = true;
  options.kv_cache_memory = Bytes(256.0 * 1024 * 1024);
  Generator generator(kTarget, options);
  std::vector<TextRequest> requests;
  for (int text = 0; text < texts; ++text)
    requests.push_back(sampled_request(first_seed + static_cast<std::uint64_t>(text)));
  const Generation generation = generator.generate(requests);
  for (const Completion& completion : generation.completions)
    for (auto end = completion.token_ids.begin() + 1; end != completion.token_ids.end(); ++end) {
      Context& context = contexts.at({completion.token_ids.begin(), end});
      const auto found = std::ranges::find(context.tokens, *end);
      if (found == context.tokens.end()) FAIL("token " << *end << " cannot be drawn");
      ++context.counts[static_cast<std::size_t>(found - context.tokens.begin())];
    }
  return generation.report.drafts;
}

struct Deviation {
  double chi_squared = 0, freedom = 0, tokens = 0;
  std::array<double, kTopK> z{};
  double of_error = 0;  // by how many standard deviations the error that was asked for moves z of the first rank

  // How far chi-squared lies above its mean, in standard deviations.
  [[nodiscard]] double excess() const { return (chi_squared - freedom) / std::sqrt(2 * freedom); }
};

// Of the counts from the contexts' probabilities, `error` of each first rank's moved to the others.
Deviation deviation(const Contexts& contexts, double error) {
  Deviation all;
  std::array<double, kTopK> sums{}, variances{};
  for (const auto& [path, context] : contexts) {
    const double visits = context.visits();
    const bool is_frequent = visits * context.probabilities.back() >= 5;  // chi-squared is about a sum of many tokens
    all.tokens += visits;
    for (std::size_t rank = 0; rank < kTopK; ++rank) {
      const double p = context.probabilities[rank] + (rank == 0 ? -error : error / (kTopK - 1));
      const double more = context.counts[rank] - visits * p;
      sums[rank] += more;
      variances[rank] += visits * p * (1 - p);
      if (is_frequent) all.chi_squared += more * more / (visits * p);
    }
    if (is_frequent) all.freedom += kTopK - 1;
  }
  for (std::size_t rank = 0; rank < kTopK; ++rank) all.z[rank] = sums[rank] / std::sqrt(variances[rank]);
  all.of_error = error * all.tokens / std::sqrt(variances[0]);
  return all;
}

constexpr double kMostDeviation = 5, kClearDeviation = 7;

// Checks that `texts` texts would show an `error` of the first ranks' probabilities, and show none. Returns the number
// of tokens for which the draft had a guess.
std::int64_t check_distribution(Contexts counted, const GeneratorOptions& options, int texts, std::uint64_t first_seed,
                                double error) {
  const DraftCounts drafts = count_tokens(counted, options, texts, first_seed);
  const Deviation right = deviation(counted, 0), wrong = deviation(counted, error);
  INFO(name(options.engine.speculative_config.method)
       << " " << to_string(options.engine.speculative_config.shape) << ": " << right.tokens << " tokens, chi-squared "
       << right.chi_squared << " of " << right.freedom << " degrees of freedom, z " << right.z[0] << ", " << right.z[1]
       << ", " << right.z[2] << "; with an error of " << error << " chi-squared " << wrong.chi_squared << ", z "
       << wrong.z[0] << ", " << wrong.of_error << " of them by it; accepted " << drafts.acceptance_rate(1));
  CHECK(right.excess() < kMostDeviation);
  for (const double z : right.z) CHECK(std::abs(z) < kMostDeviation);
  CHECK(wrong.of_error >= kClearDeviation);
  CHECK(wrong.z[0] > kMostDeviation);
  CHECK(drafts.num_accepted_tokens > texts / 4);
  std::int64_t judged = 0;
  for (const DraftCounts::Place& place : drafts.by_depth) judged += place.tested;
  return judged;
}

std::vector<GeneratorOptions> sampling_ways() {
  return {with_draft(on_one_thread(), kDraft, chain_shape(2)),
          with_draft(on_one_thread(), kDraft, full_tree_shape(std::vector<int>{3, 1})),
          with_medusa(on_one_thread(), read_medusa_shape(kMedusaHeads))};
}

// Over all ways, whose texts have seeds of their own.
std::int64_t check_ways(int texts, double error) {
  const Contexts contexts = contexts_of_model();
  REQUIRE(contexts.size() == 1 + 3 + 9 + 27);
  std::int64_t guessed = 0;
  std::uint64_t seed = 0;
  for (const GeneratorOptions& options : sampling_ways()) {
    guessed += check_distribution(contexts, options, texts, seed, error);
    seed += 1'000'000;
  }
  return guessed;
}

}  // namespace

TEST_CASE("sampled texts with drafts are distributed as the model says", "[speculation][once]") {
  CHECK(check_ways(2'000, 0.05) > 10'000);
}

TEST_CASE("of 200,000 tokens that drafts guess, 1 % would show if it were wrong", "[.][long][once][sampled]") {
  CHECK(check_ways(70'000, 0.01) >= 200'000);
}

}  // namespace dculab::engine

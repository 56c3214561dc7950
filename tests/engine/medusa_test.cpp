// Medusa on the shipped model and its shipped heads: greedy texts are the model's own, and the heads guess as well as
// their README says.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "core/error.hpp"
#include "engine/checkpoint/medusa_checkpoint.hpp"
#include "engine/evaluate/speculation_check.hpp"
#include "engine/evaluate/token_scorer.hpp"
#include "engine/generate/generator.hpp"
#include "engine/speculation/medusa.hpp"
#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"
#include "tests/engine/support/generated_texts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

const std::filesystem::path kTiny = std::filesystem::path(DCULAB_SOURCE_DIR) / "scenarios/models/dculab-tiny";
const std::filesystem::path kHeads = kTiny / "medusa";

GeneratorOptions with_heads(Dtype kv, int block_size, const DraftShape& shape) {
  GeneratorOptions options;
  options.engine.kv_cache_dtype = kv;
  options.engine.block_size = block_size;
  options.num_threads = 2;
  if (shape.nodes.empty()) return options;
  options.engine.speculative_config.method = SpeculativeMethod::medusa;
  options.engine.speculative_config.shape = shape;
  options.speculative_model = kHeads;
  return options;
}

std::string text_in(const char* file) {
  std::ifstream stream(kTiny / file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::vector<TextRequest> stories(int count, int max_tokens) {
  std::vector<TextRequest> requests;
  for (const std::string& prompt : prompts_from(text_in("calibration.txt"), count, 150))
    requests.push_back({.prompt = prompt, .max_tokens = max_tokens + static_cast<int>(requests.size() % 7)});
  return requests;
}

}  // namespace

TEST_CASE("with Medusa heads greedy texts are those of the model alone", "[medusa]") {
  const std::vector<TextRequest> requests = stories(12, 40);
  const DraftShape tree = read_medusa_shape(kHeads);
  REQUIRE_FALSE(tree.is_chain());
  DraftCounts drafts;
  int preemptions = 0;
  std::size_t way = 0;
  for (const Dtype kv : {Dtype::f32, Dtype::f16}) {
    const auto alone = texts_of(Generator(kTiny, with_heads(kv, 16, {})).generate(requests));
    for (const int block_size : {1, 16, 64})
      for (const DraftShape& shape : {tree, chain_shape(4)}) {
        if (thinned_out(way++, 4)) continue;
        GeneratorOptions options = with_heads(kv, block_size, shape);
        if (way / 4 % 2 == 0) {
          options.kv_cache_memory = kv_bytes_per_token(read_model_shape(kTiny), kv) * 300;
          options.engine.max_num_batched_tokens = 60;
          options.engine.enable_prefix_caching = true;
        }
        INFO("block size " << block_size << ", " << to_string(shape));
        const Generation generation = Generator(kTiny, options).generate(requests);
        REQUIRE(texts_of(generation) == alone);
        drafts += generation.report.drafts;
        preemptions += generation.report.num_preemptions;
      }
  }
  INFO(drafts.mean_acceptance_length() << " tokens a step, " << preemptions << " preemptions");
  CHECK(preemptions > 0);
  CHECK(drafts.mean_acceptance_length() > 1.5);
}

TEST_CASE("the shipped heads guess as well as their README says", "[medusa]") {
  const std::vector<std::vector<double>> claimed{
      {0.711, 0.806, 0.848}, {0.633, 0.731, 0.779}, {0.562, 0.669, 0.724}, {0.501, 0.612, 0.671}};
  const int num_tokens = kSanitized ? 64 : 700;
  GeneratorOptions options = with_heads(Dtype::f32, 16, {});
  options.engine.max_num_batched_tokens = options.engine.max_num_seqs = 1024;
  Generator generator(kTiny, options);
  const MedusaWeights weights = load_medusa_weights(kHeads, load_weights(kTiny));
  const auto heads = generator.executor().make_draft_heads(weights);
  std::vector<TokenId> tokens =
      generator.tokenizer().encode(text_in("eval/held-out.txt").substr(0, 6000), SpecialTokens::add);
  tokens.resize(static_cast<std::size_t>(num_tokens));
  std::vector<TokenId> own;      // the model's choice after each token
  std::vector<TokenId> guessed;  // [tokens, heads, 3]
  Batch batch;
  batch.sequences.push_back({.phase = Phase::prefill, .num_new_tokens = num_tokens, .num_logits = num_tokens});
  batch.token_ids = tokens;
  for (int block = 0; block * 16 < num_tokens; ++block)
    batch.block_tables.resize(1), batch.block_tables[0].push_back(block);
  generator.executor().run(plan_step(generator.shape(), generator.engine_options(), std::move(batch)));
  std::vector<float> hidden(static_cast<std::size_t>(generator.shape().hidden_size));
  for (int row = 0; row < num_tokens; ++row) {
    const std::span<const float> logits = generator.executor().logits(row);
    own.push_back(static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin()));
    generator.executor().copy_last_hidden(std::vector<int>{row}, hidden);
    const std::span<const TokenId> guesses = heads->guess(hidden, 3);
    guessed.insert(guessed.end(), guesses.begin(), guesses.end());
  }
  for (std::size_t head = 0; head < claimed.size(); ++head)
    for (std::size_t width = 1; width <= 3; ++width) {
      const std::size_t places = own.size() - 1 - head;
      double right = 0;
      for (std::size_t place = 0; place < places; ++place) {
        const auto first = guessed.begin() + static_cast<std::ptrdiff_t>((place * claimed.size() + head) * 3);
        right += std::find(first, first + static_cast<std::ptrdiff_t>(width), own[place + 1 + head]) !=
                 first + static_cast<std::ptrdiff_t>(width);
      }
      const double share = right / static_cast<double>(places), claim = claimed[head][width - 1];
      INFO("head " << head + 1 << ", top-" << width << ": " << share);
      CHECK(std::abs(share - claim) < 5 * std::sqrt(claim * (1 - claim) / static_cast<double>(places)));
    }
}

TEST_CASE("Medusa's typical acceptance takes what is probable, and no more than the model knows of it", "[medusa]") {
  std::vector<TextRequest> requests = stories(8, 60);
  for (std::size_t index = 0; index < requests.size(); ++index)
    requests[index].sampling = {.temperature = 0.8, .seed = index};
  const auto accepted_with = [&](RejectionSampleMethod method, double threshold, double alpha) {
    GeneratorOptions options = with_heads(Dtype::f32, 16, read_medusa_shape(kHeads));
    options.engine.speculative_config.rejection_sample_method = method;
    options.engine.speculative_config.posterior_threshold = threshold;
    options.engine.speculative_config.posterior_alpha = alpha;
    return Generator(kTiny, options).generate(requests).report.drafts.mean_acceptance_length();
  };
  const double strict = accepted_with(RejectionSampleMethod::strict, 0.09, 0.3);
  const double typical = accepted_with(RejectionSampleMethod::typical, 0.09, 0.3);
  INFO("strict " << strict << ", typical " << typical);
  CHECK(strict > 1.2);
  CHECK(typical > strict);  // it may choose the likeliest of the guesses that pass
  // The less sure the model is, the less probable a token may be: it must beat exp(-entropy) alone.
  CHECK(accepted_with(RejectionSampleMethod::typical, 1.0, 1.0) < typical);
}

TEST_CASE("samples of a prompt are drafted for once the model has read their own token", "[medusa]") {
  TextRequest request{.prompt = "Once upon a time", .max_tokens = 20, .sampling = {.temperature = 0.8, .seed = 40}};
  request.n = 3;
  Generator generator(kTiny, with_heads(Dtype::f32, 4, read_medusa_shape(kHeads)));
  const Generation generation = generator.generate(std::span(&request, 1));
  REQUIRE(generation.completions.size() == 3);
  CHECK(generation.report.drafts.num_drafts > 10);
  CHECK(generation.report.drafts.num_accepted_tokens > 0);
  generator.set_drafting(Drafting::off);  // guesses are not drawn: the texts are those of the seeds alone
  CHECK(texts_of(generator.generate(std::span(&request, 1))) == texts_of(generation));
}

TEST_CASE("heads of another model, and trees deeper than there are heads, are refused", "[medusa]") {
  CHECK_THROWS_WITH(Generator(kTiny, with_heads(Dtype::f32, 16, chain_shape(5))),
                    ContainsSubstring("the draft is 5 tokens deep, but there are 4 Medusa heads"));
  CHECK_THROWS_WITH(Generator(kTiny.parent_path() / "dculab-tiny-draft", with_heads(Dtype::f32, 16, chain_shape(2))),
                    ContainsSubstring("these heads were trained for another model"));
}

}  // namespace dculab::engine

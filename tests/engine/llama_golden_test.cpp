// The engine against transformers: logits and greedy tokens of tiny random Llama models, and the same bits however
// the work is cut into steps, blocks and threads.
#include "engine/checkpoint/model_loader.hpp"
#include "tests/engine/support/golden_steps.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
TEST_CASE("logits at every position of ragged prompts are those of transformers") {
  for (const std::string& variant : kGoldenVariants) {
    const GoldenModel golden(variant);
    Stepper stepper(load_weights(golden.folder()));
    REQUIRE(golden.prompts().size() == 3);
    // Every beginning of every prompt is a sequence of its own, all in one step.
    std::vector<Feed> feeds;
    std::vector<const float*> expected;
    const auto vocab_size = static_cast<std::size_t>(stepper.executor().shape().vocab_size);
    for (const GoldenPrompt& prompt : golden.prompts())
      for (std::size_t length = 1; length <= prompt.tokens.size(); ++length) {
        feeds.push_back({static_cast<SequenceId>(feeds.size()), Phase::prefill, first(prompt.tokens, length)});
        expected.push_back(prompt.logits.data() + (length - 1) * vocab_size);
      }
    const std::vector<Logits> rows = stepper.step(feeds);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      INFO(variant << ", sequence " << i);
      REQUIRE(rows[i].size() == vocab_size);
      REQUIRE(largest_difference(rows[i], expected[i]) <= kTolerance);
    }
  }
}

TEST_CASE("a prompt in chunks gives the bits of the whole prompt, whatever the chunk") {
  for (const std::string& variant : kGoldenVariants) {
    const GoldenModel golden(variant);
    const ModelWeights weights = load_weights(golden.folder());
    const GoldenPrompt& prompt = golden.prompts()[0];
    const auto vocab_size = static_cast<std::size_t>(weights.shape.vocab_size);
    const float* const expected = prompt.logits.data() + (prompt.tokens.size() - 1) * vocab_size;
    for (const int block_size : {4, 16}) {
      Stepper stepper(weights, {.block_size = block_size});
      const Logits whole = stepper.step({{0, Phase::prefill, prompt.tokens}})[0];
      REQUIRE(largest_difference(whole, expected) <= kTolerance);
      SequenceId sequence = 1;
      for (const std::size_t chunk : {1U, 2U, 7U, 16U, 20U, 36U}) {
        INFO(variant << ", blocks of " << block_size << ", chunks of " << chunk);
        REQUIRE(prefill_in_chunks(stepper, sequence++, prompt.tokens, chunk) == whole);
      }
    }
  }
}

TEST_CASE("prefill and decode of a ragged batch generate the greedy tokens of transformers") {
  for (const std::string& variant : kGoldenVariants) {
    INFO(variant);
    const GoldenModel golden(variant);
    Stepper stepper(load_weights(golden.folder()));
    const std::vector<Logits> rows = decode_together(stepper, golden.prompts());
    for (std::size_t i = 0; i < golden.prompts().size(); ++i) {
      std::vector<TokenId> generated;
      for (std::size_t row = i; row < rows.size(); row += golden.prompts().size())
        generated.push_back(best_token(rows[row]));
      REQUIRE(generated == golden.prompts()[i].greedy);
    }
  }
}

TEST_CASE("logits do not depend on block size, threads or where the weights lie") {
  for (const std::string variant : {"mha", "gqa", "mqa", "tied"}) {
    const GoldenModel golden(variant);
    const ModelWeights weights = load_weights(golden.folder());
    Stepper plain(weights, {.block_size = 16, .num_threads = 1});
    const std::vector<Logits> expected = decode_together(plain, golden.prompts());
    for (const int block_size : {1, 2, 8, 32, 256})
      for (const int num_threads : {1, 2, 3}) {
        INFO(variant << ", blocks of " << block_size << ", threads " << num_threads);
        Stepper stepper(weights, {.block_size = block_size, .num_threads = num_threads});
        REQUIRE(decode_together(stepper, golden.prompts()) == expected);
      }
    Stepper mapped(load_weights(golden.folder(), WeightMemory::mapped));
    REQUIRE(decode_together(mapped, golden.prompts()) == expected);
  }
}

TEST_CASE("logits do not depend on who else is in the batch") {
  for (const std::string variant : {"mha", "gqa", "mqa"}) {
    INFO(variant);
    const GoldenModel golden(variant);
    const ModelWeights weights = load_weights(golden.folder());
    Stepper together(weights);
    const std::vector<Logits> expected = decode_together(together, golden.prompts());
    for (std::size_t i = 0; i < golden.prompts().size(); ++i) {
      Stepper alone(weights);
      const std::vector<Logits> rows = decode_together(alone, {golden.prompts()[i]});
      for (std::size_t token = 0; token < rows.size(); ++token)
        REQUIRE(rows[token] == expected[token * golden.prompts().size() + i]);
    }
  }
}

TEST_CASE("prefills and decodes share a step") {
  const GoldenModel golden("gqa");
  const ModelWeights weights = load_weights(golden.folder());
  const auto& prompts = golden.prompts();
  Stepper alone(weights);
  const Logits prefill = alone.step({{0, Phase::prefill, prompts[0].tokens}})[0];
  static_cast<void>(alone.step({{1, Phase::prefill, prompts[1].tokens}}));
  const Logits decode = alone.step({{1, Phase::decode, {prompts[1].greedy[0]}}})[0];

  Stepper mixed(weights);
  static_cast<void>(mixed.step({{1, Phase::prefill, prompts[1].tokens}}));
  const auto rows = mixed.step({{0, Phase::prefill, prompts[0].tokens}, {1, Phase::decode, {prompts[1].greedy[0]}}});
  REQUIRE(rows[0] == prefill);
  REQUIRE(rows[1] == decode);
}

}  // namespace dculab::engine

// The other families against transformers: logits and greedy tokens of tiny random models with windows, biases, ALiBi,
// fused Q, K and V, parallel blocks, experts, latent and cross-layer attention; and the same bits however the work is
// cut into steps, blocks and threads.
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "tests/engine/support/golden_steps.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

const StepperOptions kRoomy{.num_tokens = 16384};

const std::vector<std::string> kAllVariants = [] {
  std::vector<std::string> all = kFamilyVariants;
  for (const auto& more : {kMixtureVariants, kLatentVariants, kCrossLayerVariants})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}();

}  // namespace

TEST_CASE("families: logits of ragged prompts are those of transformers", "[families]") {
  for (const std::string& variant : kAllVariants) {
    const GoldenModel golden(variant, kFamilyFolder);
    Stepper stepper(load_weights(golden.folder()), kRoomy);
    REQUIRE(golden.prompts().size() == 3);
    std::vector<Feed> feeds;
    std::vector<const float*> expected;
    const auto vocab_size = static_cast<std::size_t>(stepper.executor().shape().vocab_size);
    for (const GoldenPrompt& prompt : golden.prompts())
      for (std::size_t length = prompt.tokens.size(), step = 1 + length / 40; length >= 1;
           length -= std::min(step, length)) {
        feeds.push_back({static_cast<SequenceId>(feeds.size()), Phase::prefill, first(prompt.tokens, length)});
        expected.push_back(prompt.logits.data() + (length - 1) * vocab_size);
      }
    const std::vector<Logits> rows = stepper.step(feeds);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      INFO(variant << ", sequence " << i << " of " << feeds[i].tokens.size() << " tokens");
      REQUIRE(largest_difference(rows[i], expected[i]) <= kTolerance);
    }
  }
}

TEST_CASE("families: a prompt in chunks gives the bits of the whole prompt, whatever the chunk and the block",
          "[families]") {
  for (const std::string& variant : kAllVariants) {
    const GoldenModel golden(variant, kFamilyFolder);
    const ModelWeights weights = load_weights(golden.folder());
    const GoldenPrompt& prompt = golden.prompts()[0];
    const auto vocab_size = static_cast<std::size_t>(weights.shape.vocab_size);
    const float* const expected = prompt.logits.data() + (prompt.tokens.size() - 1) * vocab_size;
    Logits bits;
    for (const int block_size : {1, 4, 16, 64}) {
      Stepper stepper(weights, {.block_size = block_size});
      const Logits whole = stepper.step({{0, Phase::prefill, prompt.tokens}})[0];
      REQUIRE(largest_difference(whole, expected) <= kTolerance);
      if (bits.empty()) bits = whole;
      REQUIRE(whole == bits);
      SequenceId sequence = 1;
      for (const std::size_t chunk : {1U, 7U, 16U, 36U}) {
        INFO(variant << ", blocks of " << block_size << ", chunks of " << chunk);
        REQUIRE(prefill_in_chunks(stepper, sequence++, prompt.tokens, chunk) == whole);
      }
    }
  }
}

TEST_CASE("families: prefill and decode of a ragged batch generate the greedy tokens of transformers", "[families]") {
  for (const std::string& variant : kAllVariants) {
    INFO(variant);
    const GoldenModel golden(variant, kFamilyFolder);
    const ModelWeights weights = load_weights(golden.folder());
    Stepper stepper(weights);
    const std::vector<Logits> rows = decode_together(stepper, golden.prompts());
    for (std::size_t i = 0; i < golden.prompts().size(); ++i) {
      std::vector<TokenId> generated;
      for (std::size_t row = i; row < rows.size(); row += golden.prompts().size())
        generated.push_back(best_token(rows[row]));
      REQUIRE(generated == golden.prompts()[i].greedy);
    }
    Stepper other(weights, {.block_size = 4, .num_threads = 1});
    REQUIRE(decode_together(other, golden.prompts()) == rows);
    Stepper alone(weights);
    const std::vector<Logits> last = decode_together(alone, {golden.prompts()[2]});
    for (std::size_t token = 0; token < last.size(); ++token) REQUIRE(last[token] == rows[3 * token + 2]);
  }
}

TEST_CASE("families: mapped and copied weights compute the same", "[families]") {
  for (const std::string& variant : kAllVariants) {
    INFO(variant);
    const GoldenModel golden(variant, kFamilyFolder);
    const std::vector<Feed> feeds{{0, Phase::prefill, golden.prompts()[1].tokens}};
    Stepper copied(load_weights(golden.folder()));
    Stepper mapped(load_weights(golden.folder(), WeightMemory::mapped));
    REQUIRE(copied.step(feeds) == mapped.step(feeds));
  }
}

TEST_CASE("families: a layer at a time, with the hidden state kept in between, gives the bits of a whole step",
          "[families]") {
  for (const std::string& variant : kAllVariants) {
    INFO(variant);
    const GoldenModel golden(variant, kFamilyFolder);
    const ModelWeights weights = load_weights(golden.folder());
    Stepper whole(weights), pieces(weights);
    const std::vector<Feed> feeds{{0, Phase::prefill, golden.prompts()[2].tokens}};
    const Logits expected = whole.step(feeds)[0];
    auto& executor = dynamic_cast<CpuExecutor&>(pieces.executor());
    const StepPlan plan = pieces.plan(feeds);
    executor.begin(plan);
    executor.run_layer(plan, 0);
    for (int layer = 1; layer < weights.shape.num_layers(); ++layer) {
      const CpuExecutor::HiddenState state = executor.hidden_state();
      executor.begin(plan);
      executor.set_hidden_state(state);
      executor.run_layer(plan, layer);
    }
    executor.finish(plan);
    REQUIRE(Logits(executor.logits(0).begin(), executor.logits(0).end()) == expected);
  }
}

TEST_CASE("families: random weights fill every tensor a step reads", "[families]") {
  for (const std::string& variant : kAllVariants) {
    INFO(variant);
    Stepper stepper(random_weights(load_weights(kFamilyFolder / variant).shape, 3));
    const std::vector<Logits> rows = stepper.step({{0, Phase::prefill, {1, 2, 3, 4}}});
    for (const float logit : rows[0]) REQUIRE(std::isfinite(logit));
  }
}

}  // namespace dculab::engine

// Does the engine keep its promises when the KV cache holds 8, 4 or 2 bits a value?
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/generate/generator.hpp"
#include "model/kv/kv_bytes.hpp"
#include "tests/engine/support/shipped_text.hpp"
#include "tests/engine/support/stepper.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

constexpr Dtype kSmallDtypes[] = {Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::int8,    Dtype::kivi4,
                                  Dtype::kivi2,    Dtype::kvquant4, Dtype::kvquant2};

const ModelWeights& shipped_weights() {
  static const ModelWeights weights = load_weights(kShippedModel);
  return weights;
}

TextRequest story(int max_tokens) {
  return {.prompt = "Tom went to the", .max_tokens = max_tokens, .sampling = {.temperature = 0}};
}

GeneratorOptions options_with(Dtype dtype) {
  GeneratorOptions options;
  options.engine.kv_cache_dtype = dtype;
  options.engine.max_num_seqs = 8;
  options.num_threads = 2;
  return options;
}

// What the shipped model goes on with, 220 tokens and the prompt.
const std::vector<TokenId>& story_tokens() {
  static const std::vector<TokenId> tokens = [] {
    TextRequest request = story(220);
    request.eos = EosHandling::ignore;
    Completion completion =
        Generator(kShippedModel, options_with(Dtype::f32)).generate({&request, 1}).completions.at(0);
    std::vector<TokenId> all = completion.prompt_token_ids;
    all.insert(all.end(), completion.token_ids.begin(), completion.token_ids.end());
    return all;
  }();
  return tokens;
}

// Logits after the story and each of its last `decoded` tokens, the first part given in chunks.
std::vector<Logits> read_story(StepperOptions options, int chunk, int decoded) {
  Stepper stepper(shipped_weights(), options);
  const std::vector<TokenId>& tokens = story_tokens();
  const auto end = static_cast<int>(tokens.size()) - decoded;
  std::vector<Logits> logits;
  for (int begin = 0; begin < end; begin += chunk) {
    const std::vector<TokenId> part(tokens.begin() + begin, tokens.begin() + std::min(end, begin + chunk));
    logits = stepper.step({{0, Phase::prefill, part}});
  }
  for (int i = end; i < static_cast<int>(tokens.size()); ++i)
    logits.push_back(stepper.step({{0, Phase::decode, {tokens[static_cast<std::size_t>(i)]}}})[0]);
  return logits;
}

}  // namespace

TEST_CASE("fewer bits in the KV cache move the shipped model's logits further, of 8 bits no further than their steps",
          "[once]") {
  const Logits exact = read_story({.kv_dtype = Dtype::f32}, 512, 0)[0];
  std::map<Dtype, double> errors;
  for (const Dtype dtype : {Dtype::f16, Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::int8, Dtype::kivi4, Dtype::kivi2,
                            Dtype::kvquant4, Dtype::kvquant3, Dtype::kvquant2})
    errors[dtype] = relative_error(read_story({.kv_dtype = dtype}, 512, 0)[0], exact);
  const auto error = [&](Dtype dtype) { return errors.at(dtype); };
  // Half a step: of FP8 relative to the value, of int8 relative to the largest value of a head, which lies about 3
  // standard deviations from the mean. Of kivi and kvquant: kivi_logits_test, kvquant_logits_test.
  for (const auto& [dtype, half_step] :
       {std::pair{Dtype::fp8_e4m3, 0x1p-4}, {Dtype::fp8_e5m2, 0x1p-3}, {Dtype::int8, 3.0 / 254}}) {
    INFO(name(dtype) << " " << error(dtype));
    CHECK(error(dtype) > 0);
    CHECK(error(dtype) <= half_step);
  }
  CHECK(error(Dtype::f16) < error(Dtype::int8));
  CHECK(error(Dtype::int8) < error(Dtype::kivi4));
  CHECK(error(Dtype::kivi4) < error(Dtype::kivi2));
  CHECK(error(Dtype::kvquant4) < error(Dtype::kvquant3));
  CHECK(error(Dtype::kvquant3) < error(Dtype::kvquant2));
  CHECK(error(Dtype::fp8_e4m3) < error(Dtype::fp8_e5m2));
}

TEST_CASE("a small KV cache gives the same bits for any block size, number of threads and way to cut the work") {
  for (const Dtype dtype : kSmallDtypes) {
    INFO(name(dtype));
    const std::vector<Logits> whole = read_story({.block_size = 16, .kv_dtype = dtype}, 512, 6);
    for (const auto& [block_size, threads, chunk] : {std::tuple{1, 1, 64}, {32, 3, 7}, {128, 2, 1}}) {
      if (kSanitized && threads != 3) continue;
      INFO("block_size " << block_size << " chunk " << chunk);
      const StepperOptions options{.block_size = block_size, .num_threads = threads, .kv_dtype = dtype};
      CHECK(read_story(options, chunk, 6) == whole);
    }
  }
}

TEST_CASE("with a small KV cache, too, a text depends neither on its neighbours nor on preemption") {
  for (const Dtype dtype : kSmallDtypes) {
    INFO(name(dtype));
    std::vector<TextRequest> requests(4, story(60));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].prompt += i % 2 == 0 ? " market with a basket of" : "";
      requests[i].eos = EosHandling::ignore;
    }
    std::vector<std::vector<TokenId>> alone;
    Generator plain(kShippedModel, options_with(dtype));
    for (const TextRequest& request : requests)
      alone.push_back(plain.generate({&request, 1}).completions.at(0).token_ids);
    GeneratorOptions cramped = options_with(dtype);
    cramped.engine.max_num_batched_tokens = 16;
    cramped.engine.kv_residual_tokens = plain.engine_options().kv_residual_tokens;
    const ModelShape& shape = plain.shape();
    cramped.kv_cache_memory = kv_bytes_per_token(shape, dtype) * 16 * 11 + kv_residual_bytes(shape, dtype, 128) * 8;
    const Generation together = Generator(kShippedModel, cramped).generate(requests);
    CHECK(together.report.num_preemptions > 0);
    for (std::size_t i = 0; i < requests.size(); ++i) CHECK(together.completions[i].token_ids == alone[i]);
  }
}

TEST_CASE("an 8-bit KV cache begins a story as F32 does") {
  const TextRequest request = story(24);
  const auto tokens = [&](Dtype dtype) {
    return Generator(kShippedModel, options_with(dtype)).generate({&request, 1}).completions.at(0).token_ids;
  };
  const std::vector<TokenId> expected = tokens(Dtype::f32);
  for (const Dtype dtype : {Dtype::fp8_e4m3, Dtype::int8}) {
    INFO(name(dtype));
    CHECK(tokens(dtype) == expected);
  }
}

TEST_CASE("a kivi cache refuses a sequence that goes on from another's tokens, and options that would make one") {
  Stepper stepper(shipped_weights(), {.kv_dtype = Dtype::kivi4});
  static_cast<void>(stepper.step({{0, Phase::prefill, {5, 6, 7}}, {1, Phase::prefill, {8, 9}}}));
  StepPlan fork = stepper.plan({{0, Phase::decode, {4}}});
  fork.batch.sequences[0].id = 2;
  REQUIRE_THROWS_WITH(stepper.executor().run(fork), ContainsSubstring("sequence 2 goes on from 3 tokens") &&
                                                        ContainsSubstring("use another kv_cache_dtype"));
  GeneratorOptions options = options_with(Dtype::kivi2);
  options.engine.enable_prefix_caching = true;
  REQUIRE_THROWS_WITH(Generator(kShippedModel, options), ContainsSubstring("enable_prefix_caching cannot"));
  options = options_with(Dtype::kivi2);
  options.engine.kv_retention = {.policy = RetentionPolicy::sinks, .window_tokens = 64};
  REQUIRE_THROWS_WITH(Generator(kShippedModel, options),
                      ContainsSubstring("kv_retention") && ContainsSubstring("kivi2"));
  options = options_with(Dtype::kivi2);
  options.kv_cache_memory = Bytes(1000);
  REQUIRE_THROWS_WITH(Generator(kShippedModel, options), ContainsSubstring("for each of max_num_seqs 8 sequences"));
}

}  // namespace dculab::engine

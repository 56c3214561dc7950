// Who may draft for whom, in how much memory, and what it is compared with.
#include "core/error.hpp"
#include "engine/evaluate/speculation_check.hpp"
#include "model/kv/kv_bytes.hpp"
#include "tests/engine/support/drafting_generators.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {

TEST_CASE("a draft model of another vocabulary, and what cannot be taken back, are refused", "[speculation]") {
  CHECK_THROWS_WITH(Generator(kTarget, with_draft(engine_options(), kSmall, chain_shape(2))),
                    ContainsSubstring("vocabulary of") && ContainsSubstring("2048"));
  GeneratorOptions without = engine_options();
  without.engine.speculative_config = drafting(SpeculativeMethod::draft_model, chain_shape(2));
  CHECK_THROWS_WITH(Generator(kTarget, without), ContainsSubstring("needs a draft model"));
  GeneratorOptions kivi = with_draft(engine_options(Dtype::kivi4, 32), kDraft, chain_shape(2));
  CHECK_THROWS_WITH(Generator(kTarget, kivi), ContainsSubstring("speculative_config cannot be combined"));
  CHECK_THROWS_WITH(require_same_tokens(kTarget, kSmall), ContainsSubstring("is another than in"));
}

TEST_CASE("the cache of both models fits in the memory that is given", "[speculation]") {
  GeneratorOptions options = with_draft(engine_options(Dtype::f16), kDraft, chain_shape(2));
  options.kv_cache_memory = Bytes(20e6);
  const Generator generator(kTarget, options);
  const Bytes of_both = kv_bytes_per_token(generator.shape(), Dtype::f16) * 16 +
                        kv_bytes_per_token(read_model_shape(kDraft), Dtype::f16) * 16;
  CHECK(generator.executor().kv_cache().num_blocks == static_cast<int>(Bytes(20e6) / of_both));
}

TEST_CASE("speculation is compared with the model alone", "[speculation]") {
  Generator generator(kTarget, with_draft(engine_options(), kDraft, chain_shape(3)));
  const std::vector<std::string> prompts = prompts_from(text_of(kTarget / "calibration.txt"), 5, 100);
  REQUIRE(prompts.size() == 5);
  const SpeculationCheck check = check_speculation(generator, prompts, 12);
  CHECK(check.num_texts == 5);
  CHECK(check.num_identical == 5);
  CHECK(check.num_tokens == 60);
  CHECK(check.drafts.num_drafts > 0);
  CHECK(check.plain_rate() > 0);
  CHECK(check.drafted_rate() > 0);
}

}  // namespace dculab::engine

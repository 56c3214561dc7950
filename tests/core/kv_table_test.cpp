// The table of KV formats and policies: what combines with what, and what is refused.
#include "core/kv/table.hpp"

#include "model/plan_step.hpp"
#include "tests/core/small_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/retention_policies.hpp"

namespace dculab {
namespace {

std::vector<std::string> problems_of(const KvRetention& retention) {
  EngineOptions options;
  options.kv_retention = retention;
  return problems(options);
}

}  // namespace

TEST_CASE("policies that make no sense are refused", "[kv_retention]") {
  CHECK(problems_of({}).empty());
  CHECK(problems_of(window_of(8)).empty());
  CHECK(problems_of(sinks_of(4, 8)).empty());
  CHECK(problems_of(hitters_of(4, 8)).empty());
  CHECK_THAT(problems_of(window_of(0)).at(0), ContainsSubstring("kv_retention window needs window_tokens"));
  CHECK_THAT(problems_of(sinks_of(0, 8)).at(0), ContainsSubstring("needs sink_tokens"));
  CHECK_THAT(problems_of(hitters_of(0, 8)).at(0), ContainsSubstring("needs heavy_hitter_tokens"));
  CHECK(problems_of(critical(0.25)).empty());
  CHECK_THAT(problems_of(critical(0)).at(0),
             ContainsSubstring("kv_retention critical_blocks needs a budget above 0 and at most 1"));
  CHECK_THAT(problems_of(critical(1.5)).at(0), ContainsSubstring("above 0 and at most 1"));
  CHECK_THAT(problems_of(critical(0.5, 0)).at(0), ContainsSubstring("needs recent_blocks"));
  EngineOptions odd_format;
  odd_format.kv_cache_dtype = Dtype::int4;
  REQUIRE(problems(odd_format).size() == 1);
  CHECK_THAT(problems(odd_format).at(0),
             ContainsSubstring("kv_cache_dtype int4 is no format of a KV cache; use one of"));
  EngineOptions small_keys;
  small_keys.kv_cache_dtype = Dtype::int8;
  small_keys.kv_retention = hitters_of(4, 8);
  CHECK(problems(small_keys).empty());

  EngineOptions options;
  options.kv_retention = sinks_of(4, 8);
  options.enable_prefix_caching = true;
  options.enable_chunked_prefill = false;
  options.kv_cache_dtype = Dtype::kivi4;
  const std::vector<std::string> found = problems(options);
  REQUIRE(found.size() == 4);
  CHECK_THAT(found[0], ContainsSubstring("cannot share blocks of kv_cache_dtype kivi4"));
  CHECK_THAT(found[1], ContainsSubstring("cannot be combined with enable_prefix_caching"));
  CHECK_THAT(found[2], ContainsSubstring("needs enable_chunked_prefill"));
  CHECK_THAT(found[3], ContainsSubstring("cannot be combined with kv_cache_dtype kivi4"));
}

TEST_CASE("models whose attention goes by place are refused where places are re-used", "[kv_retention]") {
  EngineOptions options;
  options.kv_retention = hitters_of(4, 8);
  ModelShape model = small_model();
  CHECK(problems(options, model).empty());
  model.kinds[0].gqa().position.kind = PositionKind::alibi;
  CHECK_THAT(problems(options, model).at(0), ContainsSubstring("cannot serve small: ALiBi"));
  options.kv_retention = sinks_of(4, 8);  // ALiBi's distances are those within the cache, as in the paper
  CHECK(problems(options, model).empty());
  model.kinds[0].gqa().sliding_window = 64;
  CHECK_THAT(problems(options, model).at(0), ContainsSubstring("its sliding window of 64 tokens"));
  options.kv_retention = window_of(8);
  CHECK(problems(options, model).empty());
}

TEST_CASE("the table of the KV cache has a row for each format and policy, and says whom a clash is of") {
  for (const KvPolicy& policy : kKvPolicies) CHECK(&kv_policy(policy.policy) == &policy);
  for (const KvFormat& format : kKvFormats) CHECK(&kv_format(format.dtype) == &format);
  CHECK_THROWS_WITH(kv_format(Dtype::int4), "no KV cache is stored in int4");
  CHECK(kv_format_names() == "f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, kivi4, kivi2, kvquant4, kvquant3, kvquant2");
  CHECK(kv_format_word("auto") == "f16");
  CHECK(kv_format_word("AUTO") == "f16");
  CHECK(kv_format_word("fp8") == "fp8_e4m3");
  CHECK(kv_format_word("FP16") == "f16");
  CHECK(kv_format_word("fp9") == "fp9");
  CHECK(kv_format_word("kivi4") == "kivi4");
  for (const KvClash& clash : kv_clashes()) {
    INFO(clash.text);
    CHECK((clash.formats != 0 || clash.policies != 0));
    CHECK_FALSE(clash.holds({Dtype::f16, RetentionPolicy::all}));
    CHECK((clash.text.find("{dtype}") == std::string_view::npos || clash.formats != 0));
    const std::string text = clash.text_for({Dtype::kivi4, RetentionPolicy::sinks});
    CHECK(text.find("{dtype}") == std::string::npos);
    CHECK(text.find("{policy}") == std::string::npos);
  }
  CHECK(combines({Dtype::f16, RetentionPolicy::all}, KvFeature::gpu));
  CHECK(combines({Dtype::f16, RetentionPolicy::window}, KvFeature::gpu));
  CHECK(combines({Dtype::int8, RetentionPolicy::sinks}, KvFeature::gpu));
  CHECK(combines({Dtype::kivi4, RetentionPolicy::all}, KvFeature::gpu));
  CHECK_FALSE(combines({Dtype::kvquant4, RetentionPolicy::all}, KvFeature::gpu));
}

TEST_CASE("KVQuant's keys are rotated by their place, so it goes with nothing that moves tokens", "[kv_retention]") {
  const KvChoice choice{Dtype::kvquant3, RetentionPolicy::all};
  for (const KvFeature feature : {KvFeature::prefix_caching, KvFeature::swap, KvFeature::whole_prompts,
                                  KvFeature::samples, KvFeature::handing_over, KvFeature::sliding_window})
    CHECK(combines(choice, feature));
  for (const KvFeature feature : {KvFeature::speculation, KvFeature::gpu, KvFeature::missing_kv})
    CHECK_FALSE(combines(choice, feature));
  CHECK_THAT(clashes(choice, KvFeature::gpu).at(0), ContainsSubstring("kvquant3 is not supported on the GPU"));
  CHECK_FALSE(combines({Dtype::kvquant3, RetentionPolicy::sinks}, KvFeature::each_other));
  EngineOptions options;
  options.kv_cache_dtype = Dtype::kvquant4;
  CHECK(problems(options).empty());
}

TEST_CASE("a policy is written as options write it, with the tokens that it keeps or the share that it loads") {
  CHECK(policy_text(RetentionPolicy::heavy_hitters) == "heavy-hitters");
  KvRetention retention{.sink_tokens = 4, .window_tokens = 252, .heavy_hitter_tokens = 128, .kv_budget = 0.25};
  CHECK(retention_text(retention) == "all");
  retention.policy = RetentionPolicy::window;
  CHECK(retention_text(retention) == "window 252");
  retention.policy = RetentionPolicy::sinks;
  CHECK(retention_text(retention) == "sinks 4 + 252");
  retention.policy = RetentionPolicy::heavy_hitters;
  CHECK(retention_text(retention) == "heavy-hitters 128 + 252");
  retention.policy = RetentionPolicy::critical_blocks;
  CHECK(retention_text(retention) == "critical-blocks 25 %");
}

}  // namespace dculab

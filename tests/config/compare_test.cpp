// Variants of a scenario, what was published about them, and measured accuracy.
#include <cmath>

#include "config/accuracy_file.hpp"
#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

constexpr const char* kText = R"(schema: dculab/scenario/1
question: What does each option gain?
model: llama-7b
machine: z100-coopt
weights: gptq-int3
activations: int8
kv_cache: {dtype: f16}
workload: {requests: 32, prompt_tokens: 200, output_tokens: 100, arrival: all_at_once, kv_padding: longest}
sweep:
  model: [llama-7b, llama-13b]
compare:
  baseline: Original
  source: somebody
  variants:
    - {name: Opt-KV, note: narrower, changes: {kv_cache.dtype: fp8_e4m3}}
    - {name: merged, changes: {model.num_key_value_heads: 8, workload.kv_padding: none}}
  reported:
    - {variant: Opt-KV, metric: total_time, at: {model: llama-13b}, change: -5.59 %}
    - {variant: merged, metric: requests_per_second, baseline: 0.42, value: 0.70}
    - {variant: merged, metric: latency_mean, baseline: 52.30 s, value: 57.40 s}
)";

Scenario read_comparison() { return read_scenario("test.yaml", parse_yaml("test.yaml", kText)); }

TEST_CASE("a comparison is read with its variants and what was reported") {
  const Scenario scenario = read_comparison();
  CHECK(scenario.weights == WeightFormat{Dtype::int3, 128});
  CHECK(scenario.options.activations == ActivationMode::int8);
  CHECK(scenario.workload.kv_padding == KvPadding::longest);
  REQUIRE(scenario.compare);
  const Compare& compare = *scenario.compare;
  CHECK(compare.baseline == "Original");
  REQUIRE(compare.variants.size() == 2);
  CHECK(compare.variants[0].changes == std::vector<Override>{{"kv_cache.dtype", "fp8_e4m3"}});
  REQUIRE(compare.reported.size() == 3);
  CHECK(compare.reported[0].change == Approx(-0.0559));
  CHECK(compare.reported[1].change == Approx(0.70 / 0.42 - 1));
  CHECK(*compare.reported[2].baseline == Approx(52.3));
}

TEST_CASE("a variant changes its keys and nothing else") {
  const Scenario scenario = read_comparison();
  const std::vector<SweepPoint> points = sweep_points(scenario);
  REQUIRE(points.size() == 2);
  CHECK_FALSE(points[1].scenario.compare);
  const Scenario merged = with_changes(points[1].scenario, scenario.compare->variants[1]);
  CHECK(merged.model.name == "llama-13b");
  CHECK(merged.model.overrides.at("num_key_value_heads") == 8);
  CHECK(merged.workload.kv_padding == KvPadding::none);
  CHECK(merged.workload.served.requests == 32);
  CHECK(merged.options.kv_cache_dtype == Dtype::f16);
}

TEST_CASE("a reported figure belongs to the points that it names") {
  const Scenario scenario = read_comparison();
  const std::vector<SweepPoint> points = sweep_points(scenario);
  CHECK_FALSE(is_at(scenario.compare->reported[0], points[0].scenario));
  CHECK(is_at(scenario.compare->reported[0], points[1].scenario));
  CHECK(is_at(scenario.compare->reported[1], points[0].scenario));
}

TEST_CASE("a model that stands alone takes the figures that name it") {
  Node document = parse_yaml("test.yaml", kText);
  set_override(document, {"model", "llama-13b"});
  const Scenario scenario = read_scenario("test.yaml", document);
  CHECK(is_at(scenario.compare->reported[0], sweep_points(scenario).front().scenario));
}

TEST_CASE("measured accuracy is read by its columns' names") {
  const std::vector<AccuracyRow> rows = read_accuracy_file(DCULAB_SOURCE_DIR "/tests/data/group_accuracy.csv");
  REQUIRE(rows.size() == 6);
  CHECK(rows[1].method == "mean");
  CHECK(rows[1].num_key_value_heads == 4);
  CHECK(*rows[1].figure("perplexity") == Approx(3.1));
  CHECK_FALSE(rows[5].figure("recall_accuracy"));
  CHECK_FALSE(rows[0].figure("speed"));
}

TEST_CASE("lm-eval's accuracies are rows, of models whose KV heads are known") {
  const auto document = [](const std::string& heads) {
    return R"({"results": {"arc_easy": {"alias": "arc_easy", "acc,none": 0.5, "acc_norm,none": 0.4}, "wikitext":)"
           R"( {"word_perplexity,none": 9}}, "versions": {}, "config": {"model_args": "pretrained=my-gqa4,dtype=f16"})" +
           heads + "}";
  };
  const std::string known = document(R"(, "num_attention_heads": 32, "num_key_value_heads": 4)");
  const auto rows = read_accuracy("r.json", known + "\n" + known);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].benchmark == "arc_easy");
  CHECK(rows[0].score == 0.5);
  CHECK(rows[0].num_key_value_heads == 4);
  CHECK(rows[0].method == "my-gqa4");
  CHECK(rows[0].model.empty());
  CHECK_THROWS_WITH(read_accuracy("r.json", document("")),
                    ContainsSubstring("num_key_value_heads") && ContainsSubstring("'my-gqa4' of config.model_args"));
  CHECK_THROWS_WITH(
      read_accuracy_file(DCULAB_SOURCE_DIR "/tests/data/foreign/lm-eval/lm-eval-0.3_opt-350m_zero-shot.json"),
      ContainsSubstring("'facebook/opt-350m'"));
  const auto tiny =
      read_accuracy("r.json", R"({"results": {"arc": {"acc": 0.25}}, "versions": {}, "config": {"model_args":
      {"pretrained": ")" DCULAB_SOURCE_DIR R"(/scenarios/models/dculab-tiny-gqa2"}}})");
  CHECK(tiny.at(0).num_key_value_heads == 2);
}

TEST_CASE("any benchmark's score is a figure of accuracy, by the benchmark's name") {
  const std::vector<AccuracyRow> rows =
      read_accuracy("a.csv",
                    "model,num_attention_heads,num_key_value_heads,method,benchmark,score\n"
                    "big,64,,trained,MMLU,45.2\nbig,64,8,trained,MMLU,41.2\n");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].is_whole());
  CHECK_FALSE(rows[1].is_whole());
  CHECK(*rows[1].figure("MMLU") == Approx(41.2));
  CHECK_FALSE(rows[1].figure("BBH"));
  CHECK(rows[1].first_metric() == "MMLU");
  CHECK_THROWS_WITH(read_accuracy("a.csv", "model,method,benchmark,score\nbig,trained,MMLU,\n"),
                    ContainsSubstring("says whose score it is"));
}

TEST_CASE("what evaluate wrote is accuracy of copies, its perplexity and each file of questions apart") {
  const std::vector<AccuracyRow> rows = read_accuracy("own.json", R"({"schema": "dculab/evaluate/1", "rows": [
        {"model": "my-8", "num_attention_heads": 32, "num_key_value_heads": 8, "text": {"perplexity": 6.5},
         "choices": [{"file": "eval/arc.jsonl", "accuracy": 0.75}]},
        {"model": "my-4", "num_attention_heads": 32, "num_key_value_heads": 4, "text": null, "choices": []}]})");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].model.empty());
  CHECK(rows[0].method == "my-8");
  CHECK(*rows[0].figure("perplexity") == Approx(6.5));
  CHECK(*rows[1].figure("arc") == Approx(0.75));
  CHECK_THROWS_WITH(read_accuracy("own.json", R"({"schema": "dculab/bench/1", "rows": []})"),
                    ContainsSubstring("must be dculab/evaluate/1"));
}

}  // namespace
}  // namespace dculab::config

// engine.speculative_config of a scenario.
#include "config/draft_shape_text.hpp"
#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::config;

namespace {

constexpr const char* kDecodeHead =
    "schema: dculab/scenario/1\nquestion: q\nmodel: llama-3-8b\nmachine: z100\n"
    "workload: {phase: decode, batch: 4, context_tokens: 100}\n";

Scenario read_speculation(const std::string& config) {
  return read_scenario(
      "s.yaml", parse_yaml("s.yaml", std::string(kDecodeHead) + "engine:\n  speculative_config: " + config + "\n"));
}

void check_refused(const std::string& config, const std::string& why) {
  INFO(config);
  CHECK_THROWS_WITH(read_speculation(config), ContainsSubstring("s.yaml:") && ContainsSubstring(why));
}

}  // namespace

TEST_CASE("a draft model, its tokens and its acceptance are read") {
  const Scenario scenario = read_speculation(
      "{method: draft_model, model: qwen3-0.6b, weights: int8, num_speculative_tokens: 4, acceptance: 0.8}");
  const SpeculativeConfig& config = scenario.options.speculative_config;
  CHECK(config.method == SpeculativeMethod::draft_model);
  CHECK(config.shape == chain_shape(4));
  CHECK(scenario.speculation.model == "qwen3-0.6b");
  CHECK(scenario.speculation.weights->dtype == Dtype::int8);
  CHECK(scenario.speculation.acceptance.by_depth == std::vector<double>{0.8});
  CHECK(read_speculation("{method: ngram, num_speculative_tokens: 3, prompt_lookup_min: 2, prompt_lookup_max: 5}")
            .options.speculative_config.prompt_lookup_max == 5);
}

TEST_CASE("a tree is read as vLLM has it, or as branches of levels") {
  const int branches[] = {4, 2, 1};
  CHECK(read_speculation("{method: medusa, speculative_token_tree: 4x2x1}").options.speculative_config.shape ==
        full_tree_shape(branches));
  CHECK(read_speculation("{method: medusa, speculative_token_tree: '[(0,), (1,), (0, 0)]'}")
            .options.speculative_config.shape.num_tokens() == 3);
  CHECK(read_speculation("{method: medusa, num_speculative_tokens: 3, speculative_token_tree: 2x1x1}")
            .options.speculative_config.num_speculative_tokens() == 3);
}

TEST_CASE("the shape of a draft is written as it is read") {
  CHECK(draft_shape_text(chain_shape(4)) == "4");
  for (const std::string text : {"4x2x1", "2x2", "3x1x1x2"})
    CHECK(draft_shape_text(parse_draft_shape_text(text)) == text);
  CHECK(draft_shape_text(parse_draft_shape_text("[(0,), (1,)]")) == "2 in 1 level");
  CHECK(draft_shape_text(parse_draft_shape_text("[(0,), (1,), (0, 0)]")) == "3 in 2 levels");
  CHECK(draft_shape_text(parse_draft_shape_text("[(0,), (1,), (0, 0), (0, 1), (1, 0)]")) == "5 in 2 levels");
}

TEST_CASE("acceptance is a rate, rates by position, by rank, or a trace's") {
  const auto acceptance = [](const std::string& text) {
    return read_speculation("{method: medusa, speculative_token_tree: 2x2, acceptance: " + text + "}").speculation;
  };
  CHECK(acceptance("[0.9, 0.5]").acceptance.by_depth == std::vector<double>{0.9, 0.5});
  const SpeculationChoice both = acceptance("{by_position: 0.7, by_rank: [0.7, 0.2]}");
  CHECK(both.acceptance.by_depth == std::vector<double>{0.7});
  CHECK(both.acceptance.by_rank == std::vector<double>{0.7, 0.2});
  CHECK(acceptance("{from_trace: run.jsonl}").trace == "run.jsonl");
  // What a measurement forces is what it accepts.
  CHECK(read_speculation("{method: ngram, num_speculative_tokens: 2, rejection_sample_method: synthetic, "
                         "synthetic_acceptance_rates: [0.8]}")
            .speculation.acceptance.by_depth == std::vector<double>{0.8});
}

TEST_CASE("no tokens are no drafts") {
  CHECK_FALSE(read_speculation("{method: mtp, num_speculative_tokens: 0}").options.speculative_config.enabled());
}

TEST_CASE("drafts can be swept as any key") {
  const std::string swept = std::string(kDecodeHead) +
                            "engine: {speculative_config: {method: mtp, num_speculative_tokens: 1, acceptance: 0.9}}\n"
                            "sweep:\n  engine.speculative_config.num_speculative_tokens: [1, 2]\n"
                            "  engine.speculative_config.acceptance: [0.8, 0.9]\n";
  const auto points = sweep_points(read_scenario("s.yaml", parse_yaml("s.yaml", swept)));
  REQUIRE(points.size() == 4);
  CHECK(points.back().scenario.options.speculative_config.num_speculative_tokens() == 2);
  CHECK(points.front().scenario.speculation.acceptance.by_depth == std::vector<double>{0.8});
}

TEST_CASE("what makes no drafts is refused with its place") {
  check_refused("{num_speculative_tokens: 2}", "engine.speculative_config.method: missing");
  check_refused("{method: eagle, num_speculative_tokens: 2}", "'eagle' is not known");
  check_refused("{method: draft_model, num_speculative_tokens: 2}", "name the model that drafts");
  check_refused("{method: mtp, model: qwen3-0.6b, num_speculative_tokens: 2}", "without a model of its own");
  check_refused("{method: mtp}", "num_speculative_tokens: missing");
  check_refused("{method: mtp, num_speculative_tokens: 64}", "at most 63");
  check_refused("{method: medusa, num_speculative_tokens: 2, speculative_token_tree: 2x2x1}", "but the tree is 3 deep");
  check_refused("{method: medusa, speculative_token_tree: 8x8}", "more than 63 guesses");
  check_refused("{method: medusa, speculative_token_tree: 4x}", "4x2x1");
  check_refused("{method: medusa, speculative_token_tree: '[(0, 1)]'}", "the beginning of a path is missing");
  check_refused("{method: ngram, speculative_token_tree: 2x2}", "ngram drafts a chain");
  check_refused("{method: mtp, num_speculative_tokens: 2, acceptance: 1.5}", "acceptance");
  check_refused("{method: mtp, num_speculative_tokens: 2, acceptance: {}}", "says nothing");
  check_refused("{method: mtp, num_speculative_tokens: 2, acceptance: {from_trace: a, by_rank: [0.5]}}",
                "a trace has its own rates");
  check_refused("{method: mtp, num_speculative_tokens: 2, tokens: 3}", "speculative_config.tokens");
  check_refused("{method: ngram, num_speculative_tokens: 2, rejection_sample_method: synthetic}",
                "needs synthetic_acceptance_rates");
}

// `run`, `evaluate` and `bench --workload` with drafts, on the shipped models.
#include "tests/cli/conversations.hpp"
#include "tests/cli/generous_cpu.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const std::string kText = DCULAB_SOURCE_DIR "/scenarios/models/dculab-tiny/calibration.txt";
const Arguments kDraft{"--speculative-model", "dculab-tiny-draft"};
const Arguments kHeads{"--medusa", DCULAB_SOURCE_DIR "/scenarios/models/dculab-tiny/medusa"};
const Arguments kTree{"--speculative-token-tree", "[(0,), (1,), (0, 0), (1, 0)]"};

Arguments joined(Arguments arguments, const std::vector<Arguments>& more) {
  for (const Arguments& each : more) arguments.insert(arguments.end(), each.begin(), each.end());
  return arguments;
}

const Arguments kRun{"run",          "--model", "dculab-tiny",   "--prompt", "Once upon a time", "--threads", "2",
                     "--max-tokens", "40",      "--temperature", "0",        "--ignore-eos"};

TEST_CASE("run drafts and says what became of it", "[main]") {
  const Json alone = run_for_json(kRun);
  CHECK_FALSE(alone.contains("speculation"));
  const Json drafted = run_for_json(joined(kRun, {kDraft, {"--num-speculative-tokens", "3"}}));
  CHECK(drafted.at("completions") == alone.at("completions"));
  const Json& speculation = drafted.at("speculation");
  CHECK(speculation.at("drafts").get<int>() > 5);
  CHECK(speculation.at("by_position").size() == 3);
  CHECK(speculation.at("mean_acceptance_length").get<double>() > 1);
  CHECK(speculation.at("drafting_share").get<double>() > 0);
  CHECK(speculation.at("accepted_tokens").get<int>() ==
        static_cast<int>(40 - drafted.at("statistics").at("steps").get<int>()));
  CHECK_THAT(run_dculab(joined(kRun, {kDraft})).err,
             ContainsSubstring("tokens a step with a draft; accepted by position"));
}

TEST_CASE("trees and n-grams leave greedy texts as they are") {
  const Json alone = run_for_json(kRun).at("completions");
  const Json tree = run_for_json(joined(kRun, {kDraft, kTree}));
  CHECK(tree.at("completions") == alone);
  CHECK(tree.at("speculation").at("by_rank").size() == 2);
  CHECK(run_for_json(joined(kRun, {{"--prompt-lookup"}})).at("completions") == alone);
}

TEST_CASE("Medusa heads draft the tree that they come with, or another", "[main]") {
  const Json alone = run_for_json(kRun).at("completions");
  const Json drafted = run_for_json(joined(kRun, {kHeads}));
  CHECK(drafted.at("completions") == alone);
  CHECK(drafted.at("speculation").at("by_position").size() == 4);
  CHECK(drafted.at("speculation").at("by_rank").size() == 3);
  CHECK(drafted.at("speculation").at("mean_acceptance_length").get<double>() > 1.5);
  const Json chain = run_for_json(joined(kRun, {kHeads, {"--num-speculative-tokens", "2"}}));
  CHECK(chain.at("completions") == alone);
  CHECK(chain.at("speculation").at("by_position").size() == 2);
}

TEST_CASE("bench serves conversations with Medusa heads") {
  const Json rows =
      run_for_json(
          joined({"bench", "--model", "dculab-tiny", "--workload", kConversations, "--num-prompts", "4"}, {kHeads}))
          .at("rows");
  CHECK(rows.at(0).at("speculation").at("accepted_tokens").get<int>() > 0);
  const Json run =
      run_for_json(joined({"bench", "--workload", "serving/chat_on_cpu", "--set", "workload.requests=4"}, {kHeads}))
          .at("runs")
          .at(0);
  CHECK(run.at("speculation").at("drafts").get<int>() > 0);
}

TEST_CASE("evaluate compares speed and texts with and without drafts") {
  const Json row = run_for_json(joined({"evaluate", "--model", "dculab-tiny", "--text", kText, "--window", "64",
                                        "--decode-steps", "0", "--num-prompts", "3", "--max-tokens", "12"},
                                       {kDraft}))
                       .at("rows")
                       .at(0);
  const Json& speculation = row.at("speculation");
  CHECK(speculation.at("texts") == 3);
  CHECK(speculation.at("identical_texts") == 3);
  CHECK(speculation.at("generated_tokens") == 36);
  CHECK(speculation.at("tokens_per_second").get<double>() > 0);
  CHECK(speculation.at("tokens_per_second_alone").get<double>() > 0);
}

TEST_CASE("bench serves conversations with drafts") {
  const Json rows =
      run_for_json(joined({"bench", "--model", "dculab-tiny", "--workload", kConversations, "--num-prompts", "4"},
                          {kDraft,
                           {"--rejection-sample-method", "synthetic", "--synthetic-acceptance-rates", "0.9,0.5",
                            "--num-speculative-tokens", "2"}}))
          .at("rows");
  REQUIRE(rows.size() == 1);
  const Json& places = rows[0].at("speculation").at("by_position");
  REQUIRE(places.size() == 2);
  CHECK(places[0].at("acceptance_rate").get<double>() > places[1].at("acceptance_rate").get<double>());
}

TEST_CASE("bench drafts with what a scenario names, and refuses options that say otherwise") {
  const Arguments served{"bench", "--workload", "serving/chat_on_cpu", "--set", "workload.requests=4"};
  const Arguments drafts{
      "engine.speculative_config={method: draft_model, model: dculab-tiny-draft, "
      "num_speculative_tokens: 2, acceptance: 0.8}"};
  const Json run = run_for_json(joined(served, {drafts})).at("runs").at(0);
  CHECK(run.at("speculation").at("drafts").get<int>() > 0);
  CHECK(run.at("speculation").at("by_position").size() == 2);
  check_refused(joined(served, {drafts, kDraft}), {"engine.speculative_config", "says what drafts"});
  check_refused(joined(served, {Arguments{"engine.speculative_config={method: medusa, num_speculative_tokens: 2}"}}),
                {"engine.speculative_config", "--medusa DIR"});
}

TEST_CASE("bench serves a scenario with drafts and writes them to the trace") {
  const Folder folder;
  const std::string trace = folder.path("trace.jsonl");
  const Json run = run_for_json(joined({"bench", "--workload", "serving/chat_on_cpu", "--set", "workload.requests=8",
                                        "--trace", trace},
                                       {kDraft, {"--set", "slo={slowdown: 1.5}"}}))
                       .at("runs")
                       .at(0);
  CHECK(run.at("speculation").at("drafts").get<int>() > 0);
  CHECK(run.at("slowdown_p50").get<double>() > 0);
  CHECK(run.contains("share_within_slo"));
  const std::string text = read(trace);
  CHECK_THAT(text, ContainsSubstring("\"drafting_seconds\""));
  CHECK_THAT(text, ContainsSubstring("\"by_position\""));
  const Json validated = run_for_json({"validate", trace, "--machine", folder.write("cpu.yaml", kGenerousCpu)});
  CHECK(validated.at("points").size() + validated.at("refused").size() > 8);
}

TEST_CASE("options of speculation that contradict each other are refused") {
  const auto refused = [](const Arguments& more, const std::vector<std::string>& words) {
    check_refused(joined(kRun, {more}), words);
  };
  refused({"--num-speculative-tokens", "3"}, {"--num-speculative-tokens", "--prompt-lookup"});
  refused({"--prompt-lookup", "--speculative-model", "dculab-tiny-draft"}, {"--prompt-lookup"});
  refused({"--speculative-model", "dculab-tiny-draft", "--speculative-token-tree", "[(0, 0)]"},
          {"beginning of a path"});
  refused({"--speculative-model", "dculab-tiny-draft", "--speculative-token-tree", "[(0,), (0, 0)]",
           "--num-speculative-tokens", "3"},
          {"2 deep"});
  refused({"--prompt-lookup", "--speculative-token-tree", "[(0,), (1,)]"}, {"ngram drafts a chain"});
  refused({"--prompt-lookup", "--rejection-sample-method", "synthetic"}, {"synthetic_acceptance_rates"});
  refused({"--prompt-lookup", "--rejection-sample-method", "sloppy"}, {"strict, typical or synthetic"});
  refused({"--prompt-lookup", "--synthetic-acceptance-rates", "0.5"}, {"does nothing"});
  refused({"--prompt-lookup", "--posterior-alpha", "0.5"}, {"does nothing"});
  refused({"--prompt-lookup", "--kv-cache-dtype", "kivi4"}, {"speculative_config"});
  refused(joined(kHeads, {kDraft}), {"--medusa", "--speculative-model"});
  refused(joined(kHeads, {{"--num-speculative-tokens", "5"}}), {"5 tokens deep", "4 Medusa heads"});
  refused({"--medusa", "dculab-tiny"}, {"'model_type' must be 'medusa', not 'llama'"});
  refused({"--mtp"}, {"no layer that predicts further tokens"});
  refused({"--mtp", "--speculative-token-tree", "[(0,), (1,)]"}, {"mtp drafts a chain"});
  check_refused({"bench", "--model", "dculab-tiny", "--prompt-lookup"}, {"--workload"});
  check_refused({"evaluate", "--model", "dculab-tiny", "--text", kText, "--num-prompts", "3"}, {"--num-prompts"});
}

}  // namespace
}  // namespace dculab::cli::test

// `dculab diagnose`: its answer as others read it, and what it refuses.
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

Arguments diagnose(const Arguments& more) {
  Arguments arguments{"diagnose", "--model", "llama-3-8b", "--machine", "mi210", "--stack", "vllm"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("a diagnosis has the step, what physics allows, and ranked causes") {
  const Json answer = run_for_json(diagnose({"--at", "500=40ms", "--at", "2000=70ms"}));
  CHECK(answer.at("schema") == "dculab/diagnose/1");
  CHECK(answer.at("pace") == "slower");
  REQUIRE(answer.at("steps").size() == 2);
  const Json& step = answer.at("steps").at(answer.at("explained_step").get<std::size_t>());
  CHECK(step.at("floor_seconds").get<double>() < step.at("step_seconds").get<double>());
  CHECK(step.at("measured_seconds").get<double>() == Approx(0.07));
  CHECK(answer.at("over_context").at("per_token_seconds").get<double>() == Approx(20e-6));
  CHECK(answer.at("explanations").front().at("cause") == "kv_read_granularity");
  for (const Json& each : answer.at("explanations")) {
    CHECK_FALSE(each.at("evidence").get<std::string>().empty());
    CHECK_FALSE(each.at("what_to_try").get<std::string>().empty());
  }
  for (const Json& op : answer.at("ops"))
    CHECK(op.at("floor_seconds").get<double>() <= op.at("seconds").get<double>() * 1.000001);
}

// What `vllm bench serve` would write of such a server.
Json served_diagnosis(const Folder& folder, const std::string& rate, bool has_itl) {
  const std::string file = folder.path(rate + ".json");
  const Arguments load{"simulate",
                       "--model",
                       "llama-3-8b",
                       "--machine",
                       "mi210",
                       "--stack",
                       "vllm",
                       "--no-intervals",
                       "--requests",
                       "80",
                       "--prompt-tokens",
                       "1500",
                       "--output-tokens",
                       "60",
                       "--requests-per-second",
                       rate,
                       "--save-result",
                       file};
  REQUIRE(run_dculab(load).exit_code == 0);
  Json result = Json::parse(read(file));
  if (!has_itl)
    for (const char* key : {"itls", "mean_itl_ms", "median_itl_ms", "std_itl_ms", "p90_itl_ms", "p95_itl_ms"})
      result.erase(key);
  folder.write(rate + ".json", result.dump());
  return run_for_json(diagnose({file}));
}

TEST_CASE("what a client waits for beside steps of decode is prompts of others") {
  const Folder folder;
  const Json steps = served_diagnosis(folder, "2", true);
  CHECK(steps.at("pace") == "as_predicted");
  const Json& client = steps.at("client");
  CHECK(client.at("prefill_share").get<double>() > 0.2);
  CHECK(client.at("prefill_share").get<double>() ==
        Approx(client.at("predicted_prefill_share").get<double>()).margin(0.1));
  CHECK(client.at("ttft_seconds").get<double>() > client.at("prefill_seconds").get<double>());
  // TPOT alone.
  const Json tpot = served_diagnosis(folder, "4", false);
  REQUIRE_FALSE(tpot.at("explanations").empty());
  CHECK(tpot.at("explanations").front().at("cause") == "prefills_in_steps");
  // Nearly every step has a prompt in it: the median between two tokens is no step of decode alone either.
  const Json full = served_diagnosis(folder, "8", true);
  REQUIRE_FALSE(full.at("explanations").empty());
  CHECK(full.at("explanations").front().at("cause") == "prefills_in_steps");
  CHECK(full.at("explanations").front().at("verdict") == "likely");
  CHECK_FALSE(full.at("client").contains("prefill_share"));
  CHECK_THAT(full.at("warnings").front().get<std::string>(), ContainsSubstring("no step of decode alone"));
}

TEST_CASE("a step inside its interval is as fast as it should be") {
  const Json answer = run_for_json(diagnose({"--tokens-per-second", "75"}));
  CHECK(answer.at("pace") == "as_predicted");
  CHECK(answer.at("explanations").empty());
  CHECK_THAT(run_dculab(diagnose({"--tokens-per-second", "75"})).out, ContainsSubstring("as fast as it should be"));
}

TEST_CASE("what cannot be, and what says nothing, is refused") {
  const auto refused = [](const Arguments& arguments, const std::string& reason) {
    INFO(reason);
    const Finished done = run_dculab(diagnose(arguments));
    CHECK(done.exit_code == 2);
    CHECK(done.out.empty());
    CHECK_THAT(done.err, ContainsSubstring(reason));
  };
  refused({"--tokens-per-second", "1000"}, "cannot be: mi210 needs at least");
  refused({}, "nothing was measured");
  refused({"--tokens-per-second", "0"}, "--tokens-per-second");
  refused({"--at", "500"}, "has no '='");
  refused({"--desc-act", "perhaps"}, "--desc-act");
  refused({"--tpot", "20"}, "has no unit");
  refused({"--prefill-tokens-per-second", "100", "--tpot", "20ms"}, "one at a time");
  refused({"--at", "8x500=40ms", "--batch", "4"}, "--batch: does nothing");
  refused({"--at", "500=40ms", "--context", "8"}, "--context: does nothing");
  refused({"--tpot", "40ms", "--prompt-tokens", "8"}, "--prompt-tokens");
}

TEST_CASE("of steps of several paces the verdict names its own and counts the others") {
  const Finished done = run_dculab({"diagnose", "--model", "llama-3-8b", "--machine", "mi50", "--stack", "vllm-triton",
                                    "--at", "500=200ms", "--at", "2000=20ms", "--at", "64x500=60ms"});
  CHECK_THAT(done.out, ContainsSubstring("decode, batch 1, context 500: ") &&
                           ContainsSubstring("to explain; 1 of 3 steps slower than predicted, 1 faster"));
}

TEST_CASE("a step far beyond every cause is none of them, and parts are rounded to what is known") {
  const Finished done = run_dculab(diagnose({"--tpot", "25s"}));
  CHECK_THAT(done.out, ContainsSubstring("none of the known causes explains it (100 % likely)"));
  CHECK_THAT(done.out, !ContainsSubstring("e-"));
}

}  // namespace
}  // namespace dculab::cli::test

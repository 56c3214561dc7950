// `dculab recommend --decode-machine`: pools of prefill and decode replicas, and the commands that start them.
#include "tests/cli/program.hpp"
#include "tests/cli/recommendations.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

[[nodiscard]] Arguments asked(const Arguments& more) {
  Arguments arguments{"recommend", "--model",          "qwen3-32b", "--machine",
                      "h100-sxm",  "--decode-machine", "k100-ai",   "--stack",
                      "vllm",      "--ttft",           "2 s",       "--tpot",
                      "60 ms",     "--output-tokens",  "128",       "--requests-per-second",
                      "4"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("pools of two kinds of machine are chosen, beside what each needs alone", "[main]") {
  const Json report = run_for_json(asked({"--devices", "8"}));
  CHECK(report.at("schema") == "dculab/recommend/1");
  CHECK(report.at("recommendations").empty());
  const Json& found = report.at("disaggregated").at(0);
  CHECK(found.at("prefill_machine") == "h100-sxm");
  CHECK(found.at("decode_machine") == "k100-ai");
  const Json& chosen = found.at("pairs").at(found.at("chosen").get<std::size_t>());
  CHECK(chosen.at("simulated").at("slo_attainment") >= 0.9);
  CHECK(chosen.at("prefill_replicas") == found.at("prefill").at("replicas"));
  CHECK(found.at("devices").get<int>() ==
        found.at("prefill").at("devices").get<int>() + found.at("decode").at("devices").get<int>());
  CHECK(found.at("alone").at(1).at("fleet").at("devices") > 0);
  const std::string prefill = found.at("serve_commands").at(0), decode = found.at("serve_commands").at(1);
  CHECK_THAT(prefill,
             ContainsSubstring("vllm serve Qwen/Qwen3-32B ") && ContainsSubstring("\"kv_role\":\"kv_producer\""));
  CHECK_THAT(decode, ContainsSubstring("\"kv_role\":\"kv_consumer\""));
  for (const char* machine : {"h100-sxm", "k100-ai"}) CHECK(report.at("machine_facts").contains(machine));
}

TEST_CASE("pools in words, and what they refuse") {
  const std::string text = run_dculab(asked({"--devices", "8"})).out;
  CHECK_THAT(text, ContainsSubstring(" requests/s within TTFT 2 s, TPOT 60 ms: ") && ContainsSubstring(" of TP ") &&
                       ContainsSubstring(" on h100-sxm, ") && ContainsSubstring("→ without disaggregation: "));
  check_refused(asked({}), {"--decode-machine", "add --devices N"});
  check_refused(asked({"--devices", "8", "--serve-params", "x.json"}), {"--decode-machine", "--serve-params"});
  check_refused(asked({"--devices", "8", "--set", "deployment.tensor_parallel_size=2"}),
                {"deployment", "all of it chosen but kv_transfer and routing"});
}

}  // namespace
}  // namespace dculab::cli::test

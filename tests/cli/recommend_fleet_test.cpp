// `dculab recommend --devices`: layouts, and the commands that start them.
#include <algorithm>

#include "tests/cli/program.hpp"
#include "tests/cli/recommendations.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

TEST_CASE("with devices offered a layout is chosen, and what measures it is written", "[main]") {
  const Folder folder;
  const std::string serve = folder.path("serve.json"), bench = folder.path("bench.json");
  const Arguments asked{"recommend", "--model",   "qwen3-32b", "--machine",      "k100-ai", "--stack",
                        "vllm",      "--ttft",    "2 s",       "--tpot",         "60 ms",   "--requests-per-second",
                        "5",         "--devices", "8",         "--serve-params", serve,     "--bench-params",
                        bench};
  const Json found = run_for_json(asked).at("recommendations").at(0);
  const Json& fleet = found.at("fleet");
  const Json& chosen = fleet.at("layouts").at(fleet.at("chosen").get<std::size_t>());
  CHECK(chosen.at("replicas") == found.at("replicas"));
  CHECK(chosen.at("simulated").at("slo_attainment") >= 0.9);
  CHECK(fleet.at("servers").get<int>() * 8 >= fleet.at("devices").get<int>());
  const Json& expected = found.at("expected");
  const Json& ttft = expected.at("ttft_p90");
  CHECK(ttft.at("interval").at(0) <= ttft.at("value"));
  CHECK(ttft.at("value") <= ttft.at("interval").at(1));
  const std::string command = found.at("serve_command");
  CHECK_THAT(command, ContainsSubstring("vllm serve Qwen/Qwen3-32B --tensor-parallel-size "));
  const Json combinations = Json::parse(read(serve));
  CHECK(combinations.at(0).at("tensor_parallel_size") == found.at("tensor_parallel_size"));
  CHECK(combinations.at(0).at("max_num_seqs") == found.at("max_num_seqs"));
  REQUIRE(combinations.size() > 1);
  for (const Json& each : combinations) {
    INFO(each.dump());
    CHECK(each.at("kv_cache_dtype") == "auto");
    CHECK(each.at("gpu_memory_utilization") <= 0.95);
    CHECK(each.at("block_size").is_number());
  }
  const auto is_other = [&](const Json& each) {
    return each.value("tensor_parallel_size", 1) != found.at("tensor_parallel_size") ||
           each.value("pipeline_parallel_size", 1) != found.at("pipeline_parallel_size");
  };
  CHECK(std::ranges::any_of(combinations, is_other));  // another layout
  CHECK(Json::parse(read(bench)).at(0).at("random_input_len") == 1024);
}

TEST_CASE("of a mixture of experts each replica has a command of its own") {
  const Json found = run_for_json({"recommend", "--model", "qwen3-30b-a3b", "--machine", "k100-ai", "--stack", "vllm",
                                   "--requests-per-second", "20", "--devices", "8", "--ttft", "2 s", "--tpot", "50 ms"})
                         .at("recommendations")
                         .at(0);
  REQUIRE(found.at("replicas").get<int>() > 1);
  REQUIRE(found.at("expert_parallel_size").get<int>() > 1);
  const int ranks = found.at("expert_parallel_size").get<int>() / found.at("tensor_parallel_size").get<int>();
  CHECK_THAT(found.at("serve_command").get<std::string>(),
             ContainsSubstring("--data-parallel-size " + std::to_string(ranks) + " --enable-expert-parallel "));
  CHECK_THAT(found.at("serve_note").get<std::string>(),
             ContainsSubstring("Start it " + std::to_string(found.at("replicas").get<int>()) + " times"));
}

TEST_CASE("SGLang gets its own options, and another program none") {
  const Json found = run_for_json({"recommend", "--model", "llama-3-8b", "--machine", "h100-sxm", "--stack", "sglang"})
                         .at("recommendations")
                         .at(0);
  const std::string command = found.at("serve_command");
  CHECK_THAT(command,
             ContainsSubstring("python3 -m sglang.launch_server --model-path meta-llama/Meta-Llama-3-8B --page-size "));
  CHECK_THAT(command, ContainsSubstring(" --mem-fraction-static 0."));
  const Json other =
      run_for_json({"recommend", "--model", "llama-3-8b", "--machine", "mi50-32gb", "--stack", "llama.cpp"})
          .at("recommendations")
          .at(0);
  CHECK(other.at("serve_command") == "");
}

TEST_CASE("a layout is chosen or given") {
  check_refused(recommend("z100", {"--servers", "2"}), {"--servers", "--devices"});
  check_refused(recommend("z100", {"--devices", "2", "--set", "deployment.tensor_parallel_size=2"}),
                {"deployment", "--devices has it chosen"});
  // Nothing serves so many requests on one device.
  check_refused(recommend("z100", {"--devices", "1", "--servers", "1", "--requests-per-second", "100"}),
                {"no layout serves the load (needs more devices than are offered, ", " or more: TP 1); offer more"});
}

}  // namespace
}  // namespace dculab::cli::test

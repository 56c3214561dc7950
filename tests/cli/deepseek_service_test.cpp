// DeepSeek's service beside its published day, and deployments whose devices share experts.
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const Json& variant_of(const Json& point, const std::string& name) {
  for (const Json& each : point.at("variants"))
    if (each.at("variant") == name) return each;
  throw std::runtime_error("no variant " + name);
}

// docs/reference/papers.md says which term each pool lacks.
TEST_CASE("the pools of DeepSeek's service stand beside its published day, with their terms") {
  const Json study = run_for_json({"study", "papers/deepseek_service"});
  const Json& point = study.at("comparisons").at(0);
  REQUIRE(point.at("reported").size() == 5);
  for (const Json& row : point.at("reported")) {  // no engine is faster than its kernels alone
    INFO(row);
    const double predicted = row.at("predicted_value"), reported = row.at("reported_value");
    const double faster = row.at("metric") == "step_time" ? reported / predicted : predicted / reported;
    CHECK(faster > 1);
    CHECK(faster < 2.2);
  }
  for (const Json& entry : point.at("variants"))
    for (const char* pool : {"prefill", "decode"}) {
      INFO(entry.at("variant") << " " << pool);
      const Json& its = entry.at("pools").at(pool);
      double sum = 0;
      for (const auto& [term, seconds] : its.at("terms").items())
        if (term != "hidden exchange") sum += seconds.get<double>();
      CHECK(sum == Approx(its.at("step_seconds").get<double>()));
    }
  const auto step = [&](const std::string& name) {
    return variant_of(point, name).at("pools").at("decode").at("step_seconds").get<double>();
  };
  CHECK(step("Hot experts") > step("Service"));
  CHECK(step("Hot experts, none redundant") > step("Hot experts"));
  CHECK(variant_of(point, "No KV store").at("input_tokens_per_second_per_node").get<double>() <
        0.7 * variant_of(point, "Service").at("input_tokens_per_second_per_node").get<double>());
}

TEST_CASE("experts that cannot be shared are refused where the scenario has its deployment") {
  const auto with = [](const std::string& model, const std::string& deployment) {
    return "schema: dculab/scenario/1\nquestion: Does it fit?\nmodel: " + model +
           "\nmachine: h800\nstack: vllm\nkv_cache: {block_size: 64}\nworkload: {requests: 8, prompt_tokens: 100, "
           "output_tokens: 10}\ndeployment: " +
           deployment + "\n";
  };
  const Folder folder;
  const auto refused = [&](const std::string& text, const std::string& why) {
    const std::string file = folder.write("experts.yaml", text);
    check_refused({"simulate", file}, {file + ":8", why});
  };
  refused(with("deepseek-v3", "{expert_parallel_size: 144}"), "256 experts do not divide over 144 devices");
  refused(with("llama-3-8b", "{expert_parallel_size: 8}"), "has no experts to share");
  refused(with("deepseek-v3", "{expert_parallel_size: 8, pipeline_parallel_size: 2}"), "must be 1 beside it");
  refused(with("llama-3-8b", "{pipeline_parallel_size: 64}"), "32 layers do not make 64 stages");
}

// A decode of DeepSeek-V3 on 32 devices, with more settings of the deployment on lines of their own.
std::string decode_on_32(const std::string& settings) {
  return "schema: dculab/scenario/1\nquestion: How fast?\nmodel: deepseek-v3\nmachine: h800\nstack: vllm\n"
         "kv_cache: {block_size: 64}\nworkload: {phase: decode, batch: 64, context_tokens: 4096}\ndeployment:\n"
         "  expert_parallel_size: 32\n" +
         settings;
}

TEST_CASE("what no step has of a deployment is refused where the scenario has it") {
  const Folder folder;
  const auto refused = [&](const std::string& settings, const std::string& line, const std::string& why) {
    const std::string file = folder.write("experts.yaml", decode_on_32(settings));
    check_refused({"study", file}, {file + ":" + line, why});
  };
  refused("  num_redundant_experts: 32\n  routing: random\n", "11", "deployment.routing: is of served requests");
  refused("  micro_batches: 2\n", "10", "deployment.micro_batches: a step's ops are predicted as one batch");
  refused("  data_parallel_size: 2\n", "8", "deployment: a step is predicted on devices that share every layer");
}

TEST_CASE("predict says what it assumes of devices that share experts", "[main]") {
  const Arguments predict{"predict",
                          "--model",
                          "deepseek-v3",
                          "--machine",
                          "h800",
                          "--stack",
                          "vllm",
                          "--phase",
                          "decode",
                          "--batch",
                          "64",
                          "--context",
                          "4096",
                          "--set",
                          "kv_cache.block_size=64",
                          "deployment.expert_parallel_size=32"};
  const Json step = run_for_json(predict);
  const Json& two = step.at("two_micro_batches");
  const double one = step.at("step_seconds"), hidden = two.at("hidden_exchange_seconds");
  CHECK(hidden > 0);
  CHECK(two.at("step_seconds").get<double>() < 2 * one);
  CHECK(two.at("step_seconds").get<double>() + hidden > one);  // weights are read twice
  CHECK_THAT(run_dculab(predict).out, ContainsSubstring("assumed: one micro-batch, so nothing hides") &&
                                          ContainsSubstring("two that overlap") &&
                                          !ContainsSubstring("moving experts"));
  Arguments moved = predict;
  moved.insert(moved.end(), {"deployment.rebalance_interval=600 s"});
  CHECK_THAT(run_dculab(moved).out, ContainsSubstring("moving experts, which adds"));
}

TEST_CASE("prompt tokens from the KV store are told apart from those of the prefix cache") {
  const Folder folder;
  const std::string begin =
      "schema: dculab/scenario/1\nquestion: How fast?\nmodel: deepseek-v3\nmachine: h800\nstack: vllm\nkv_cache: "
      "{block_size: 64}\nworkload: {requests: 64, prompt_tokens: 1024, output_tokens: 4, prefix_tokens: 512}\n";
  const auto simulate = [&](const std::string& rest) {
    return Arguments{"simulate", folder.write("store.yaml", begin + rest)};
  };
  const Arguments store =
      simulate("deployment: {expert_parallel_size: 32, kv_store: {read_bandwidth: 40 GB/s, hit_rate: 0.5}}\n");
  const Json read = run_for_json(store).at("simulations").at(0);
  CHECK(read.at("stored_prompt_tokens") == 64 * 512);
  CHECK(read.at("cached_prompt_tokens") == 64 * 512);
  CHECK_THAT(run_dculab(store).out, ContainsSubstring("32768 prompt tokens read from the KV store") &&
                                        !ContainsSubstring("found by prefix caching"));
  const Arguments device = simulate("engine: {enable_prefix_caching: true}\ndeployment: {expert_parallel_size: 32}\n");
  CHECK_FALSE(run_for_json(device).at("simulations").at(0).contains("stored_prompt_tokens"));
  CHECK_THAT(run_dculab(device).out, ContainsSubstring("prompt tokens found by prefix caching"));
}

TEST_CASE("an expert-parallel replica is simulated by one of its groups", "[main]") {
  const Folder folder;
  const std::string file =
      folder.write("experts.yaml",
                   "schema: dculab/scenario/1\nquestion: How fast?\nmodel: deepseek-v3\nmachine: "
                   "h800\nstack: vllm\nkv_cache: {block_size: 64}\nworkload: {requests: 288, "
                   "prompt_tokens: 500, output_tokens: 10}\ndeployment: {expert_parallel_size: 144, "
                   "num_redundant_experts: 32}\n");
  const Json run = run_for_json({"simulate", file}).at("simulations").at(0);
  CHECK(run.at("one_in") == 144);
  CHECK(run.at("requests") == 288);
}

}  // namespace
}  // namespace dculab::cli::test

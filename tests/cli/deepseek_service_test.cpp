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
  for (const Json& row : point.at("reported")) {  // nobody's engine is faster than its kernels alone
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
}

TEST_CASE("an expert-parallel replica is simulated by one of its groups") {
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

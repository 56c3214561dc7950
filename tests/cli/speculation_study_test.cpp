// Drafts in `study`, `predict`, `simulate` and `recommend`.
#include <algorithm>

#include "tests/cli/generous_cpu.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

constexpr const char* kSmall =
    "schema: dculab/scenario/1\n"
    "question: How many tokens?\n"
    "model: llama-2-7b\n"
    "machine: mi50\n"
    "workload: {phase: decode, batch: 1, context_tokens: 500}\n"
    "engine:\n"
    "  speculative_config: {method: ngram, num_speculative_tokens: 2, acceptance: 0.7}\n"
    "sweep:\n"
    "  workload.batch: [1, 64]\n"
    "  engine.speculative_config.num_speculative_tokens: [1, 2, 4]\n";

TEST_CASE("a study of drafts says how many tokens to draft at each batch, and up to which they pay", "[main]") {
  const Json study = run_for_json({"study", "speculation_on_dcu", "--set", "workload.batch=16"});
  const Json& machine = study.at("machines").at(0);
  REQUIRE(machine.at("points").size() == 8);
  for (const Json& point : machine.at("points")) {
    const double tokens = point.at("expected_tokens"), plain = point.at("plain_step_seconds");
    const double taken = point.at("verify_step_seconds").get<double>() + point.at("drafting_seconds").get<double>();
    CHECK(point.at("speed_up").get<double>() == Approx(tokens * plain / taken));
    CHECK(point.at("interval").at(0) < point.at("speed_up"));
  }
  const Json& advice = machine.at("advice").at(0);
  CHECK(advice.at("batches").size() == 1);
  CHECK(advice.at("drafts").size() == 8);
  CHECK(study.at("then").size() == 1);  // trees
}

TEST_CASE("the scenario of drafts is predicted for a server, and measured here beside what is predicted") {
  const Json predicted = run_for_json({"study", "speculation", "--set", "workload.batch=1"});
  CHECK(predicted.at("machines").at(0).at("machine") == "x86-server");
  CHECK(predicted.at("machines").at(0).at("points").size() == 8);
  const Folder folder;  // a pair that is small enough for a test
  const Json measured = run_for_json(
      {"study", "speculation", "--measure", "--host", folder.write("cpu.yaml", kGenerousCpu), "--set",
       "model=dculab-tiny", "weights=checkpoint", "activations=exact", "engine.speculative_config.weights=checkpoint",
       "engine.speculative_config.model=dculab-tiny-draft", "engine.speculative_config.num_speculative_tokens=2",
       "workload.batch=1", "workload.context_tokens=64", "measure={repeats: 1, warm_up: 0, threads: 2}"});
  REQUIRE(measured.at("points").size() == 1);
  const Json& point = measured.at("points").at(0);
  CHECK(point.at("measured").at("speed_up").get<double>() > 0);
  CHECK(point.at("predicted").at("speed_up").get<double>() > 0);
  CHECK(measured.at("summary").at("count") == 1);
  CHECK(measured.at("then").size() == 1);  // DCUs, predicted
}

TEST_CASE("fewer tokens are drafted for a larger batch, and for less is gained") {
  Folder folder;
  const Json study = run_for_json({"study", folder.write("small.yaml", kSmall)});
  const Json& batches = study.at("machines").at(0).at("advice").at(0).at("batches");
  REQUIRE(batches.size() == 2);
  CHECK(batches.at(0).at("speed_up") > batches.at(1).at("speed_up"));
  CHECK(batches.at(0).at("num_speculative_tokens") >= batches.at(1).at("num_speculative_tokens"));
}

TEST_CASE("both tables of the lecture stand beside the closed form and the simulator", "[main]") {
  const Json study = run_for_json({"study", "papers/speculation"});
  const Json& rows = study.at("machines").at(0).at("reported");
  REQUIRE(rows.size() == 15);
  for (const Json& row : rows) {
    INFO(row.at("variant"));
    const double reported = row.at("reported");
    CHECK(reported >= 1.4);
    CHECK(reported <= 3.4);
    // Steps of one sequence barely take longer with drafts: all three agree.
    CHECK(row.at("simulated").get<double>() == Approx(row.at("priced").at("speed_up").get<double>()).epsilon(0.1));
    CHECK(row.at("closed_form").get<double>() >= row.at("priced").at("speed_up").get<double>() * 0.99);
  }
}

TEST_CASE("predict prices a step that verifies drafts, and says what it yields") {
  const Json step =
      run_for_json({"predict", "--model", "llama-2-7b", "--machine", "mi50", "--context", "500", "--set",
                    "engine.speculative_config={method: ngram, num_speculative_tokens: 3, acceptance: 0.8}"});
  CHECK(step.at("speculation").at("expected_tokens").get<double>() == Approx(2.952));
  CHECK(step.at("step_seconds") == step.at("speculation").at("verify_step_seconds"));
}

TEST_CASE("DeepSeek-V3 drafts with its own layer, which is then counted") {
  const Json step = run_for_json(
      {"predict", "--model", "deepseek-v3", "--machine", "h200", "--stack", "vllm", "--set", "kv_cache.block_size=64",
       "deployment.tensor_parallel_size=8", "kv_cache.dtype=bf16", "engine.activation_dtype=bf16",
       "engine.speculative_config={method: mtp, num_speculative_tokens: 1, acceptance: 0.9}"});
  CHECK(step.at("speculation").at("speed_up") > 1.2);
  CHECK(step.at("speculation").at("speed_up") < 1.9);
  for (const Json& warning : step.at("warnings"))
    CHECK(warning.get<std::string>().find("further tokens") == std::string::npos);
}

TEST_CASE("requests are served with drafts, and the report says how many were accepted", "[main]") {
  Folder folder;
  const std::string file =
      folder.write("served.yaml",
                   "schema: dculab/scenario/1\nquestion: q\nmodel: llama-2-7b\nmachine: mi50\n"
                   "engine: {max_num_seqs: 4, speculative_config: {method: draft_model, model: llama-2-7b, "
                   "weights: int4, num_speculative_tokens: 0, acceptance: 0.75}}\n"
                   "kv_cache: {block_size: 16}\nweights: gptq-int4\n"
                   "workload: {requests: 6, prompt_tokens: 50, output_tokens: 60}\n"
                   "sweep: {engine.speculative_config.num_speculative_tokens: [0, 3]}\n");
  const Json run = run_for_json({"simulate", file});
  const Json& plain = run.at("simulations").at(0);
  const Json& drafted = run.at("simulations").at(1);
  CHECK_FALSE(plain.contains("speculation"));
  CHECK(drafted.at("speculation").at("mean_acceptance_length").get<double>() ==
        Approx(1 + 0.75 + 0.5625 + 0.4219).epsilon(0.1));
  CHECK(drafted.at("seconds_by_bound").contains("drafting"));
  CHECK(drafted.at("output_tokens") == plain.at("output_tokens"));
  CHECK(drafted.at("num_blocks") < plain.at("num_blocks"));
  const Finished one = run_dculab({"simulate", file, "--set", "engine.speculative_config.num_speculative_tokens=3"});
  CHECK_THAT(one.out, ContainsSubstring("accepted by position"));
}

TEST_CASE("recommend says how many tokens to draft with what it chooses") {
  const Json answer =
      run_for_json({"recommend", "--model", "llama-2-7b", "--machine", "mi50", "--set",
                    "engine.speculative_config={method: ngram, num_speculative_tokens: 3, acceptance: 0.8}"});
  const Json& choice = answer.at("recommendations").at(0);
  CHECK(choice.at("drafts").size() == 8);
  CHECK(choice.at("num_speculative_tokens").is_number());
}

TEST_CASE("drafts that cannot be predicted are refused") {
  Folder folder;
  const std::string file = folder.write("small.yaml", kSmall);
  const auto refused = [&file](const std::string& change, const std::vector<std::string>& parts) {
    check_refused({"study", file, "--set", change}, parts);
  };
  refused("engine.speculative_config.method=mtp", {"num_nextn_predict_layers"});
  refused("engine.speculative_config={method: ngram, num_speculative_tokens: 2}", {"acceptance: missing"});
  refused("engine.speculative_config.num_speculative_tokens=0", {"leave 0 out"});
  refused(
      "engine.speculative_config={method: draft_model, model: qwen3-0.6b, num_speculative_tokens: 2, acceptance: 0.8}",
      {"vocabulary"});
  refused("objective={minimize: step_time}", {"a search over steps weighs steps without drafts"});
  refused("workload.phase=prefill", {"set decode"});
  check_refused({"study", file, "--measure"}, {"runs method draft_model at every point"});
}

}  // namespace
}  // namespace dculab::cli::test

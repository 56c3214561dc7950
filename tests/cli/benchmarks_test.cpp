// `validate` and `calibrate` on results of benchmark tools, from `simulate --save-result` back to a machine.
#include <filesystem>
#include <string>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const std::string kForeign = DCULAB_SOURCE_DIR "/tests/data/foreign/";

// A server whose figures are not those of its files.
constexpr double kDramBandwidth = 0.66, kMatmulCompute = 0.6;

void simulate_truth(const std::string& result, const Arguments& load) {
  Arguments arguments{"simulate",
                      "--model",
                      "llama-3-8b",
                      "--machine",
                      "k100-ai",
                      "--stack",
                      "vllm",
                      "--no-intervals",
                      "--save-result",
                      result,
                      "--set",
                      "machine.sustained.dram_bandwidth=0.66",
                      "stack.reached.matmul_compute=0.6",
                      "stack.host.per_step=800 us"};
  arguments.insert(arguments.end(), load.begin(), load.end());
  REQUIRE(run_dculab(arguments).exit_code == 0);
}

double fitted(const Json& answer, const std::string& key) {
  for (const Json& parameter : answer.at("parameters"))
    if (parameter.at("key") == key) return parameter.at("value");
  FAIL(key << " was not fitted");
  return 0;
}

}  // namespace

TEST_CASE("what was simulated is found again, and written where every command reads it") {
  const Folder folder;
  const std::string results = folder.path("results");
  std::filesystem::create_directory(results);
  simulate_truth(results + "/alone.json",
                 {"workload.max_concurrency=1", "--requests", "6", "--prompt-tokens", "2000", "--output-tokens", "24"});
  simulate_truth(results + "/many.json", {"workload.max_concurrency=32", "--requests", "64", "--prompt-tokens", "500",
                                          "--output-tokens", "60"});
  simulate_truth(results + "/random.json", {"workload.seed=3", "--requests", "40", "--prompt-tokens", "1000",
                                            "--output-tokens", "40", "--requests-per-second", "1.5"});
  const Arguments question{"--machine", "k100-ai", "--model", "llama-3-8b", "--stack", "vllm"};

  Arguments validate{"validate", results};
  validate.insert(validate.end(), question.begin(), question.end());
  const Json before = run_for_json(validate);
  CHECK(before.at("summary").at("median_abs_error") > 0.05);

  Arguments calibrate{"calibrate", results, "--output", folder.path("learned")};
  calibrate.insert(calibrate.end(), question.begin(), question.end());
  const Json answer = run_for_json(calibrate);
  CHECK(fitted(answer, "sustained.dram_bandwidth") == Approx(kDramBandwidth).epsilon(0.05));
  CHECK(fitted(answer, "stack.reached.matmul_compute") == Approx(kMatmulCompute).epsilon(0.05));
  CHECK(answer.at("after").at("median_abs_error") < 0.01);
  CHECK(answer.at("files").size() == 2);
  // Clients send requests when they do, however long a step takes.
  for (const Json& figure : answer.at("figures")) {
    if (figure.at("metric") != "requests_per_second" || figure.at("file") != results + "/random.json") continue;
    CHECK(figure.at("high").get<double>() < 1.15 * figure.at("low").get<double>());
  }

  const Json after = run_for_json({"validate", results, "--model", "llama-3-8b", "--machine",
                                   folder.path("learned/hwmodels/k100-ai.yaml"), "--stack", answer.at("files").at(1)});
  CHECK(after.at("summary").at("median_abs_error") < 0.02);
  CHECK(after.at("summary").at("inside_interval") == 1.0);

  const auto predicted = [&](const std::string& model, const std::string& stack) {
    return run_for_json({"predict", "--model", model, "--machine", folder.path("learned/hwmodels/k100-ai.yaml"),
                         "--stack", stack, "--batch", "8", "--context", "520"});
  };
  CHECK(predicted("llama-3-8b", answer.at("files").at(1)).at("basis") == "interpolated");
  CHECK(predicted("deepseek-v2-lite", answer.at("files").at(1)).at("basis") == "extrapolated");
  const Json other = predicted("llama-3-8b", "sglang");
  CHECK(other.at("basis") == "priors");
  CHECK(other.at("interval_seconds").at(1).get<double>() > 1.2 * other.at("interval_seconds").at(0).get<double>());
}

TEST_CASE("foreign results are predicted with what their files say", "[main]") {
  const Json alone = run_for_json(
      {"validate", kForeign + "vllm/mi50_vllm0.11.0_qwen3-vl-32b-awq_c1_pp8192_detailed.json", "--machine", "mi50",
       "--model", "qwen3-32b", "--stack", "vllm", "--set", "weights=gptq-int4", "deployment.tensor_parallel_size=2"});
  CHECK(alone.at("stack") != "dculab");
  CHECK(alone.at("figures").size() > 4);
  for (const Json& figure : alone.at("figures")) {
    CHECK(figure.at("low") <= figure.at("predicted"));
    CHECK(figure.at("predicted") <= figure.at("high"));
  }
  const Arguments latency{"validate",  kForeign + "vllm/mi300x_vllm2025-08_llama3.1-8b_bs8_in128_out128.json",
                          "--machine", "mi300x",
                          "--model",   "llama-3.1-8b"};
  check_refused(latency, {"--batch, --prompt-tokens, --output-tokens"});
  Arguments shaped = latency;
  shaped.insert(shaped.end(), {"--batch", "8", "--prompt-tokens", "128", "--output-tokens", "128"});
  CHECK(run_for_json(shaped).at("figures").at(0).at("metric") == "duration");
  const Json llama = run_for_json(
      {"validate", kForeign + "llama-bench/docsample_b5163.csv", "--machine", "a100-40gb", "--model", "qwen2.5-7b"});
  CHECK(llama.at("stack") == "llama.cpp-cuda");
  CHECK(llama.at("figures").at(1).at("metric") == "decode_tokens_per_second");
}

TEST_CASE("a GGUF format that a benchmark ran is predicted the same when it is asked for by name") {
  const Folder folder;
  const std::string file = folder.write(
      "llama_bench.jsonl",
      R"({"build_commit": "360e134", "build_number": 6000, "cpu_info": "x", "gpu_info": "AMD Instinct MI60 / MI50", )"
      R"("backends": "ROCm", "model_filename": "Qwen3-8B-Q4_0.gguf", "model_type": "qwen3 8B Q4_0", "n_batch": 2048, )"
      R"("n_ubatch": 512, "type_k": "f16", "type_v": "f16", "n_gpu_layers": 99, "n_prompt": 0, "n_gen": 128, )"
      R"("n_depth": 0, "avg_ts": 90, "stddev_ts": 0.2})"
      "\n");
  const Json measured = run_for_json({"validate", file, "--machine", "mi50-32gb", "--model", "qwen3-8b"});
  const double rate = measured.at("figures").at(0).at("predicted");
  const Json asked = run_for_json({"predict", "--model", "qwen3-8b", "--machine", "mi50-32gb", "--stack", "llama.cpp",
                                   "--weights", "Q4_0", "--context", "64"});
  CHECK(1 / asked.at("step_seconds").get<double>() == Approx(rate).epsilon(0.02));
  CHECK_THAT(asked.dump(), ContainsSubstring("head Q6_K as int8"));
}

TEST_CASE("steps that llama-bench timed behind a prompt take as long as the prompt and they", "[main]") {
  const Folder folder;
  const auto row = [](int prompt, int output, int depth) {
    return Json{{"build_commit", "8cf427ff"},
                {"n_prompt", prompt},
                {"n_gen", output},
                {"n_depth", depth},
                {"avg_ts", 100},
                {"type_k", "f16"},
                {"type_v", "f16"},
                {"n_ubatch", 512},
                {"gpu_info", "NVIDIA A100"},
                {"backends", "CUDA"},
                {"split_mode", "layer"},
                {"devices", "auto"},
                {"n_gpu_layers", 99},
                {"model_type", "qwen2 7B Q4_K - Medium"},
                {"model_filename", "qwen2.gguf"}};
  };
  folder.write("rows.json", Json::array({row(512, 0, 0), row(0, 128, 512), row(512, 128, 0)}).dump());
  const Json figures =
      run_for_json({"validate", folder.path("rows.json"), "--machine", "a100-40gb", "--model", "qwen2.5-7b"})
          .at("figures");
  const auto rate = [&figures](int index) { return figures.at(index).at("predicted").get<double>(); };
  CHECK(figures.at(2).at("metric") == "total_tokens_per_second");
  CHECK(640 / rate(2) == Approx(512 / rate(0) + 128 / rate(1)));
}

TEST_CASE("files of other kinds are named, with what takes them", "[main]") {
  const std::string database = kForeign + "profiles/SYNTH_nsys_gh200_vllm_250kernels.sqlite";
  check_refused({"validate", database, "--machine", "z100"}, {"SQLite database", "dculab import"});
  check_refused({"calibrate", kForeign + "gguf/GGUFSharp_example.gguf", "--machine", "z100"}, {"GGUF", "--model"});
  const std::string trace = std::string(DCULAB_SOURCE_DIR) + "/tests/data/traces/nvidia-h200/decode-long.jsonl.gz";
  check_refused({"validate", kForeign + "aiperf", trace, "--machine", "z100"}, {"one kind at a time"});
  check_refused({"validate", kForeign + "aiperf", "--machine", "z100", "--model", "llama-3-8b"}, {"give --stack"});
  check_refused({"validate", kForeign + "aiperf"}, {"--machine"});
}

TEST_CASE("options that would change nothing of a benchmark are refused", "[main]") {
  const std::string latency = kForeign + "vllm/mi300x_vllm2025-08_llama3.1-8b_bs8_in128_out128.json";
  const std::string rows = kForeign + "llama-bench/docsample_b5163.csv";
  for (const Arguments& idle : {Arguments{"--hold-out", "0.3"}, {"--seed", "2"}, {"--machine-file", "m.yaml"}}) {
    Arguments arguments{"calibrate", latency, "--machine", "mi300x"};
    arguments.insert(arguments.end(), idle.begin(), idle.end());
    check_refused(arguments, {idle.front(), "is of traces"});
  }
  check_refused({"validate", latency, "--machine", "mi300x", "--worst", "3"}, {"--worst"});
  check_refused({"validate", rows, "--machine", "a100-40gb", "--model", "qwen2.5-7b", "--batch", "3"}, {"--batch"});
  check_refused({"validate", rows, "--machine", "a100-40gb", "--model", "qwen2.5-7b", "--set", "weights=f16"},
                {"--set", "llama-bench"});
  check_refused({"validate", "--points", "p.csv", "--model", "qwen2.5-7b"}, {"--model"});
}

}  // namespace dculab::cli::test

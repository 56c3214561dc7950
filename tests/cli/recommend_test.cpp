// `dculab recommend`: choices that can be checked by pricing them, and refusals.
#include <algorithm>
#include <map>
#include <sstream>

#include "tests/cli/generous_cpu.hpp"
#include "tests/cli/program.hpp"
#include "tests/cli/recommendations.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

// What `predict` says of a decode step with this KV dtype.
double step_seconds(const std::string& machine, const std::string& dtype, int batch, int context) {
  return run_for_json({"predict", "--model", "llama-3-8b", "--machine", machine, "--batch", std::to_string(batch),
                       "--context", std::to_string(context), "--kv-cache-dtype", dtype})
      .at("step_seconds");
}

TEST_CASE("the machines that are asked about most get settings that vLLM can be started with") {
  for (const char* machine : {"z100", "k100-ai", "bw1000", "mi300x"}) {
    INFO(machine);
    const Json found = recommendation(machine);
    CHECK(decision(found, "model.num_key_value_heads").at("choice") == "8");  // the model's own
    CHECK(found.at("vllm_options").get<std::string>().starts_with("--block-size "));
    CHECK(found.at("regret").is_null());
    CHECK(found.at("basis") == "priors");
    CHECK(decision(found, "kv_cache.dtype").at("margin_basis") == "priors");
    CHECK(found.at("interval_seconds")[0] < found.at("step_seconds"));
    CHECK(found.at("kernels").size() >= 5);  // stacks for the machine, our own first
    CHECK(found.at("kernels")[0].at("kernel") == "dculab");
    CHECK(found.at("max_num_seqs").get<int>() % 8 == 0);
    CHECK(found.at("max_num_seqs") <= found.at("most_num_seqs"));
    for (const Json& each : found.at("decisions")) {
      INFO(each.dump());
      const Json& candidates = each.at("candidates");
      const auto chosen =
          std::ranges::find(candidates, each.at("choice"), [](const Json& one) { return one.at("value"); });
      REQUIRE(chosen != candidates.end());
      double best = 0;  // with as many sequences: their number comes in steps of 8
      for (const Json& candidate : candidates)
        if (candidate.at("max_num_seqs") == chosen->at("max_num_seqs"))
          best = std::max(best, candidate.at("output_tokens_per_second").get<double>());
      CHECK(chosen->at("output_tokens_per_second").get<double>() * (1 + each.at("tie").get<double>()) >= best);
    }
  }
}

TEST_CASE("what is promised is what the settings carry when they are simulated, within a tie of the best") {
  for (const char* machine : {"z100", "mi300x"}) {
    INFO(machine);
    const Json found = recommendation(machine);
    const Json& tokens = found.at("max_num_batched_tokens");
    double most = 0, chosen = 0;
    for (const Json& each : tokens.at("candidates")) {
      const double rate = each.at("most_requests_per_second");
      most = std::max(most, rate);
      if (each.at("value") == tokens.at("choice")) chosen = rate;
    }
    CHECK(chosen * 1.02 >= most);
    CHECK(found.at("output_tokens_per_second").get<double>() ==
          Approx(chosen * found.at("output_tokens").get<double>()));
  }
}

TEST_CASE("what is promised does not hang on the draw of a few requests") {
  std::vector<double> promised;
  for (const char* seed : {"1", "3"}) {
    Arguments arguments{"recommend", "serving/llama3_on_z100", "--concurrency", "1", "--requests-per-second", "0.2"};
    arguments.insert(arguments.end(), {"--set", std::string("workload.seed=") + seed});
    const Json found = run_for_json(arguments).at("recommendations").at(0);
    promised.push_back(found.at("output_tokens_per_second"));
  }
  CHECK(promised[0] == Approx(promised[1]).epsilon(0.1));  // the mean lengths are those of the draw
}

TEST_CASE("the KV dtype flips where pricing the step directly says it does, and not before") {
  const Json found = recommendation("z100");
  const Json& dtype = decision(found, "kv_cache.dtype");
  const Json& flips = dtype.at("flips");
  const double tie = dtype.at("tie");
  const int batch = found.at("max_num_seqs"), context = found.at("context_tokens");
  const auto keeps_f16 = [&](int at_batch, int at_context) {
    return step_seconds("z100", "f16", at_batch, at_context) <=
           step_seconds("z100", "fp8_e4m3", at_batch, at_context) * (1 + tie);
  };
  const bool here = keeps_f16(batch, context);
  int checked = 0;
  for (const auto& [key, back] : {std::pair{"batch_below", 1}, {"batch_above", -1}}) {
    if (flips.at(key).is_null()) continue;
    CHECK(keeps_f16(flips.at(key), context) != here);
    CHECK(keeps_f16(flips.at(key).get<int>() + back, context) == here);
    ++checked;
  }
  for (const auto& [key, back] : {std::pair{"context_below", 1}, {"context_above", -1}}) {
    if (flips.at(key).is_null()) continue;
    CHECK(keeps_f16(batch, flips.at(key)) != here);
    CHECK(keeps_f16(batch, flips.at(key).get<int>() + back) == here);
    ++checked;
  }
  CHECK(checked > 0);
}

TEST_CASE("a tighter TPOT never lets more sequences in, and is kept") {
  int last = 1 << 20;
  for (const char* tpot : {"1 s", "100 ms", "60 ms"}) {
    INFO(tpot);
    const Json found = recommendation("k100-ai", {"--tpot", tpot});
    CHECK(found.at("max_num_seqs").get<int>() <= last);
    last = found.at("max_num_seqs");
  }
  CHECK(recommendation("k100-ai", {"--tpot", "60 ms"}).at("tpot_seconds").get<double>() <= 0.060);
}

TEST_CASE("a KV dtype that the machine's file knows nothing of is warned of") {
  const char* warning = "whether bw1000 computes in fp8_e4m3 is not known";
  const Arguments fp8{"--kv-cache-dtype", "fp8_e4m3"};
  CHECK_THAT(run_dculab(recommend("bw1000", fp8)).out, ContainsSubstring(warning));
  CHECK_THAT(run_dculab(recommend("mi300x", fp8)).out, !ContainsSubstring("is not known, its file"));
}

TEST_CASE("where 16 bits of KV do not fit, fewer are recommended, whatever other kernels cannot do") {
  // 13.5 of 14.4 GiB are weights: no room for 4000 tokens of 512 KiB, for half of that there is.
  const Arguments mi50{"recommend",       "--model", "llama-2-7b",      "--machine", "mi50",
                       "--prompt-tokens", "3500",    "--output-tokens", "500"};
  const Json found = run_for_json(mi50).at("recommendations").at(0);
  CHECK(decision(found, "kv_cache.dtype").at("choice") == "fp8_e4m3");
  CHECK(decision(found, "kv_cache.dtype").at("candidates")[0].at("max_num_seqs") == 0);
  for (const Json& kernel : found.at("kernels"))
    if (kernel.contains("best")) CHECK(kernel.at("best").at("kv_cache_dtype") == "fp8_e4m3");
  CHECK_THAT(run_dculab(mi50).out, ContainsSubstring("no other serves") && !ContainsSubstring("f16 does without"));
  Arguments half = mi50;
  half.insert(half.end(), {"--kv-cache-dtype", "f16"});
  check_refused(half, {"not one sequence fits", "with KV in f16;"});
  Arguments none = mi50;
  none.insert(none.end(), {"--set", "engine.gpu_memory_utilization=0.8"});
  check_refused(none, {"not one sequence fits", "f16 or fp8_e4m3"});
}

TEST_CASE("a kernel that cannot serve the load says why, and the others are compared") {
  // As much memory as an MI50 has: gpt-fast knows no FP8.
  const Json found = run_for_json({"recommend", "--model", "llama-2-7b", "--machine", "a100-40gb", "--prompt-tokens",
                                   "3500", "--output-tokens", "500", "--set", "engine.gpu_memory_utilization=0.36"})
                         .at("recommendations")
                         .at(0);
  int without = 0;
  for (const Json& kernel : found.at("kernels")) {
    if (kernel.at("kernel") == "gpt-fast") {
      CHECK_FALSE(kernel.contains("best"));
      CHECK(kernel.at("why_not") == "not one sequence fits beside the weights with KV in f16");
    } else {
      without += kernel.contains("best") ? 1 : 0;
    }
  }
  CHECK(without >= 2);  // dculab's and vLLM's
}

TEST_CASE("a kernel that misses a TPOT which another meets says so") {
  const Arguments alone{"--concurrency", "1", "--prompt-tokens", "7900", "--output-tokens", "100"};
  const auto kernel = [](const Json& found, const char* name) {
    for (const Json& each : found.at("kernels"))
      if (each.at("kernel") == name) return each;
    return Json();
  };
  const auto tpot = [](const Json& of_kernel) { return of_kernel.at("best").at("tpot_seconds").get<double>(); };
  const Json free = recommendation("z100", alone);
  const double ours = tpot(kernel(free, "dculab")), paged = tpot(kernel(free, "vllm-0.3.3-dtk"));
  REQUIRE(ours < paged);
  Arguments limited = alone;
  limited.insert(limited.end(), {"--tpot", std::to_string((ours + paged) / 2 * 1e6) + " us"});
  const Json found = recommendation("z100", limited);
  CHECK(kernel(found, "dculab").contains("best"));
  CHECK_THAT(kernel(found, "vllm-0.3.3-dtk").at("why_not").get<std::string>(), ContainsSubstring("slo.tpot"));
  CHECK(found.at("vllm_options") == "");
}

TEST_CASE("a service level that most requests miss is said to be missed") {
  const Arguments busy = recommend(
      "z100", {"--weights", "gptq-int4", "--ttft", "100 ms", "--tpot", "100 ms", "--requests-per-second", "2"});
  const Json found = run_for_json(busy).at("recommendations").at(0).at("max_num_batched_tokens");
  for (const Json& each : found.at("candidates")) CHECK(each.at("slo_attainment") < 0.9);
  CHECK_THAT(run_dculab(busy).out,
             ContainsSubstring("of the simulated requests 0 % meet the slo, where 90 % should; TTFT P90 is "));
  const Arguments idle =
      recommend("z100", {"--weights", "gptq-int4", "--ttft", "100 s", "--tpot", "1 s", "--requests-per-second", "0.1"});
  CHECK_THAT(run_dculab(idle).out, !ContainsSubstring("meet the slo"));
  Arguments any = busy;
  any.insert(any.end(), {"--set", "slo.share=0.5"});
  CHECK_THAT(run_dculab(any).out, ContainsSubstring("where 50 % should"));
}

TEST_CASE("on a GPU the partition that fills it is a candidate") {
  // 8 groups of heads are 8 workgroups a sequence; 4 for each of the 64 compute units: 32 parts of 250 tokens for one
  // sequence, 11 of 728 for three, rounded up to a multiple of 256.
  const auto partitions = [](const char* concurrency) {
    std::vector<std::string> values;
    const Json found =
        recommendation("z100", {"--concurrency", concurrency, "--prompt-tokens", "7900", "--output-tokens", "100"});
    for (const Json& each : decision(found, "attention.partition_tokens").at("candidates"))
      values.push_back(each.at("value"));
    return values;
  };
  const std::vector<std::string> usual{"512", "256", "1024", "2048", "unsplit"};
  CHECK(partitions("1") == usual);
  std::vector<std::string> with_filling = usual;
  with_filling.emplace_back("768");
  CHECK(partitions("3") == with_filling);
}

TEST_CASE("what is given is not decided", "[main]") {
  const Json found =
      recommendation("mi300x", {"--kv-cache-dtype", "fp8_e4m3", "--block-size", "32", "--concurrency", "9"});
  CHECK(decision(found, "kv_cache.dtype").at("candidates").size() == 1);
  CHECK(decision(found, "kv_cache.block_size").at("choice") == "32");
  CHECK(found.at("max_num_seqs") == 9);  // as asked for, no multiple of 8
  CHECK(found.at("vllm_options").get<std::string>().starts_with("--block-size 32 --kv-cache-dtype fp8_e4m3 "));
}

TEST_CASE("KV heads change only when they may, and what others would bring is shown all the same") {
  const Json own = recommendation("z100");
  CHECK(decision(own, "model.num_key_value_heads").at("candidates").size() == 1);
  CHECK(own.at("kv_heads").size() == 6);  // 32, 16, 8, 4, 2, 1
  const Json any = recommendation("z100", {"--any-kv-heads", "--prompt-tokens", "6000", "--output-tokens", "2000"});
  CHECK(std::stoi(decision(any, "model.num_key_value_heads").at("choice").get<std::string>()) < 8);
}

// The lines of a trace with other times, by the steps' block size.
std::string retimed(const std::string& trace, const std::map<int, double>& seconds) {
  std::istringstream lines(trace);
  std::string line, result;
  while (std::getline(lines, line)) {
    Json json = Json::parse(line);
    if (json.contains("options")) {
      json["seconds"] = seconds.at(json.at("options").at("block_size"));
      json["ops"] = Json::array();
    }
    result += json.dump() + "\n";
  }
  return result;
}

TEST_CASE("decision regret is what the predicted block took more in the trace, without steps that cannot be true") {
  const Folder folder;
  const std::string trace = folder.path("t.jsonl");
  (void)run_for_json({"bench", "--model", "dculab-tiny", "--batch", "1", "--context", "32", "--block-size", "16,64,128",
                      "--repeats", "1", "--warm-up", "0", "--trace", trace});
  std::string host = kGenerousCpu;
  host.replace(host.find("generous-cpu"), 12, "host");
  const std::string machine = folder.write("host.yaml", host);
  const auto recommended = [&](const std::map<int, double>& seconds) {
    const std::string file = folder.write("retimed.jsonl", retimed(read(trace), seconds));
    return run_for_json({"recommend", "--model", "dculab-tiny", "--prompt-tokens", "100", "--output-tokens", "20",
                         "--machine", machine, "--trace", file})
        .at("recommendations")[0];
  };
  const auto regret = [](const Json& found) { return found.at("regret").at("regret").get<double>(); };
  // No step can take 1 fs, so blocks of 128 are not among the choices. Of the other two either may be predicted best.
  const Json small = recommended({{16, 1}, {64, 1.5}, {128, 1e-15}});
  const Json large = recommended({{16, 1.5}, {64, 1}, {128, 1e-15}});
  CHECK(std::max(regret(small), regret(large)) == Approx(0.5));
  CHECK(std::min(regret(small), regret(large)) == 0);
  REQUIRE(small.at("refused").size() == 2);  // a prefill and a decode
  CHECK_THAT(small.at("refused")[0].get<std::string>(), ContainsSubstring("below the"));
  const Json refused = recommended({{16, 1}, {64, 1e-15}, {128, 1e-15}});
  CHECK(refused.at("regret").is_null());  // one choice is left
}

TEST_CASE("a scenario with requests is recommended for; other questions are refused") {
  const Json found = run_for_json({"recommend", "serving/llama3_on_z100", "--set", "workload.requests_per_second=1"});
  CHECK(found.at("recommendations").at(0).at("requests_per_second") == 1);
  check_refused({"recommend", "serving/llama3_on_z100"}, {"sweep.workload.requests_per_second", "--set"});
  check_refused({"recommend", "--model", "llama-3-8b"}, {"--machine"});
  check_refused(recommend("z100", {"--prompt-tokens", "9000"}), {"9256 tokens", "max_position_embeddings"});
  check_refused(recommend("z100", {"--tpot", "1 us"}), {"slo.tpot"});
  check_refused({"recommend", "--model", "llama-3-70b", "--machine", "z100"}, {"fits"});
  check_refused({"recommend", "quickstart"}, {"workload"});
}

}  // namespace
}  // namespace dculab::cli::test

// `dculab study` of the papers' scenarios and of the choice of KV heads.
#include <algorithm>
#include <cmath>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const Json& variant(const Json& point, const std::string& name) {
  for (const Json& each : point.at("variants"))
    if (each.at("variant") == name) return each;
  throw std::runtime_error("no variant " + name);
}

TEST_CASE("every figure that LLM-CoOpt's text gives stands beside a prediction") {
  const Json study = run_for_json({"study", "papers/llm_coopt"});
  CHECK(study.at("schema") == "dculab/study/1");
  const Json& points = study.at("comparisons");
  REQUIRE(points.size() == 5);
  std::vector<double> latencies, throughputs;
  for (const Json& point : points) {
    INFO(point.at("choices"));
    REQUIRE(point.at("reported").size() == 2);
    for (const Json& row : point.at("reported")) {
      (row.at("metric") == "total_time" ? latencies : throughputs).push_back(row.at("reported_change"));
      CHECK(row.at("difference").get<double>() ==
            Approx(row.at("predicted_change").get<double>() - row.at("reported_change").get<double>()));
    }
    // A group of one query head has nothing to share.
    CHECK(variant(point, "Opt-GQA").at("change").at("total_time").get<double>() == 0);
    CHECK(variant(point, "Opt-KV").at("change").at("total_time").get<double>() < 0);
    CHECK(variant(point, "LLM-CoOpt").at("change").at("total_time").get<double>() <
          variant(point, "Opt-KV").at("change").at("total_time").get<double>());
    // The same requests: the run's time and its rate say the same.
    const Json& change = variant(point, "LLM-CoOpt").at("change");
    CHECK((1 + change.at("total_time").get<double>()) * (1 + change.at("output_tokens_per_second").get<double>()) ==
          Approx(1));
  }
  const std::vector<double> latencies_of_text{-5.59, -5.48, -6.18, -6.75, -4.82};
  const std::vector<double> throughputs_of_text{7.20, 6.13, 12.13, 10.85, 5.72};
  REQUIRE(latencies.size() == 5);
  REQUIRE(throughputs.size() == 5);
  for (std::size_t model = 0; model < 5; ++model) {
    CHECK(100 * latencies[model] == Approx(latencies_of_text[model]));
    CHECK(100 * throughputs[model] == Approx(throughputs_of_text[model]));
  }
}

TEST_CASE("Opt-GPTQ's requests per second follow from shorter requests, not from a faster machine") {
  const Json study = run_for_json({"study", "papers/opt_gptq", "--set", "machine=z100"});
  const Json& point = study.at("comparisons").at(0);
  const Json& same = variant(point, "Opt-GQA").at("change");
  const Json& shorter = variant(point, "Opt-GQA as reported").at("change");
  CHECK(same.at("requests_per_second").get<double>() < 0.2);
  CHECK(shorter.at("requests_per_second").get<double>() > 0.5);
  CHECK(shorter.at("requests_per_second").get<double>() - shorter.at("tokens_per_second").get<double>() > 0.4);
}

const Json& reported(const Json& point, const std::string& name, const std::string& metric) {
  for (const Json& each : point.at("reported"))
    if (each.at("variant") == name && each.at("metric") == metric) return each;
  throw std::runtime_error("nothing reported of " + name);
}

bool lies_in(double value, const Json& interval) {
  return interval.at(0).get<double>() <= value && value <= interval.at(1).get<double>();
}

TEST_CASE("Opt-GPTQ's time and its change lie inside the interval on the machine that LLM-CoOpt describes") {
  const Json study = run_for_json({"study", "papers/opt_gptq"});
  for (const Json& point : study.at("comparisons")) {
    INFO(point.at("machine"));
    const Json& latency = reported(point, "Opt-GQA as reported", "total_time");
    CHECK(lies_in(latency.at("reported_change"), latency.at("change_interval")));
    if (point.at("machine") == "z100-coopt")
      CHECK(lies_in(latency.at("reported_baseline"), latency.at("baseline_interval")));
  }
}

// Wanted are -5.3 to +2.9 points; docs/reference/papers.md has why the right kernels miss it.
TEST_CASE("LLM-CoOpt's gains are no farther from what it reports than the page says") {
  const Json points = run_for_json({"study", "papers/llm_coopt"}).at("comparisons");
  double lowest = 0, highest = 0;
  for (const Json& point : points)
    for (const Json& row : point.at("reported")) {
      lowest = std::min(lowest, row.at("difference").get<double>());
      highest = std::max(highest, row.at("difference").get<double>());
    }
  CHECK(100 * lowest > -10.2);
  CHECK(100 * highest < 4.85);
}

TEST_CASE("a rate has the interval of its time, turned over") {
  const Json study = run_for_json({"study", "papers/opt_gptq", "--set", "machine=z100"});
  const Json& point = study.at("comparisons").at(0);
  const Json& time = reported(point, "Opt-GQA", "total_time");
  const Json& rate = reported(point, "Opt-GQA", "requests_per_second");
  for (const char* interval : {"baseline_interval", "change_interval"}) {
    const double work = interval == std::string("baseline_interval") ? 22 : 1, plus = 1 - (work > 1);
    CHECK((rate.at(interval).at(0).get<double>() + plus) * (time.at(interval).at(1).get<double>() + plus) ==
          Approx(work));
    CHECK((rate.at(interval).at(1).get<double>() + plus) * (time.at(interval).at(0).get<double>() + plus) ==
          Approx(work));
  }
}

TEST_CASE("several scenarios are studied at once") {
  const Json studies = run_for_json({"study", "papers/opt_gptq", "papers/llm_coopt_requests"}).at("studies");
  REQUIRE(studies.size() == 2);
  CHECK(studies[0].at("comparisons").size() == 2);
  CHECK(studies[1].at("comparisons").size() == 5);
  check_refused({"study", "papers/opt_gptq", "papers/llm_coopt", "--measure"}, {"one scenario at a time"});
}

std::string stacks_compared(const std::string& changes) {
  return "schema: dculab/scenario/1\n"
         "question: Whose kernels?\n"
         "model: llama-3-8b\n"
         "machine: z100\n"
         "stack: vllm-0.3.3-dtk\n"
         "workload: {phase: decode, batch: 16, context_tokens: 512}\n"
         "compare:\n"
         "  baseline: vLLM\n"
         "  variants: [{name: other, changes: {" +
         changes + "}}]\n";
}

TEST_CASE("a variant runs on the machine and the stack that it says") {
  const Folder folder;
  const auto step = [&folder](const std::string& changes) {
    const Json study = run_for_json({"study", folder.write("compare.yaml", stacks_compared(changes))});
    return variant(study.at("comparisons").at(0), "other").at("step_time").get<double>();
  };
  const auto alone = [](const Arguments& more) {
    Arguments arguments{"predict", "--model", "llama-3-8b", "--phase", "decode", "--batch", "16", "--context", "512"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_for_json(arguments).at("step_seconds").get<double>();
  };
  CHECK(step("stack: dculab") == Approx(alone({"--machine", "z100"})));
  CHECK(step("stack.kernels_per_op: 3") ==
        Approx(alone({"--machine", "z100", "--stack", "vllm-0.3.3-dtk", "--set", "stack.kernels_per_op=3"})));
  CHECK(step("machine: z100-coopt") == Approx(alone({"--machine", "z100-coopt", "--stack", "vllm-0.3.3-dtk"})));
  CHECK(step("machine.clock: 1 GHz") ==
        Approx(alone({"--machine", "z100", "--stack", "vllm-0.3.3-dtk", "--set", "machine.clock=1 GHz"})));
}

TEST_CASE("a stack file may lie beside the scenario") {
  const Folder folder;
  std::string stack = read(DCULAB_SOURCE_DIR "/stacks/vllm-0.3.3-dtk.yaml");
  stack.replace(stack.find("name: vllm-0.3.3-dtk"), 20, "name: mine");
  (void)folder.write("mine.yaml", stack);
  const Json study = run_for_json({"study", folder.write("compare.yaml", stacks_compared("stack: mine.yaml"))});
  const Json& point = study.at("comparisons").at(0);
  CHECK(variant(point, "other").at("stack") == "mine");
  CHECK(variant(point, "other").at("step_time") == variant(point, "vLLM").at("step_time"));
}

TEST_CASE("a variant that would change no price is refused") {
  const Folder folder;
  const auto refused = [&folder](const std::string& changes, const std::string& why) {
    check_refused({"study", folder.write("compare.yaml", stacks_compared(changes))}, {why});
  };
  refused("engine.preemption_mode: swap", "other: engine.preemption_mode changes no predicted time");
  refused("measure.repeats: 3", "other: measure.repeats changes no predicted time");
  refused("deployment.tensor_parallel_size: 2", "is of one device");
}

TEST_CASE("the stack may be swept under compare") {
  const Folder folder;
  const Json study = run_for_json({"study", folder.write("compare.yaml", stacks_compared("kv_cache.block_size: 16")),
                                   "--set", "sweep.stack=[dculab, vllm-0.3.3-dtk]"});
  const Json& points = study.at("comparisons");
  REQUIRE(points.size() == 2);
  CHECK(points[0].at("variants")[0].at("stack") == "dculab");
  CHECK(points[0].at("variants")[0].at("step_time") != points[1].at("variants")[0].at("step_time"));
}

Arguments group_study(const Folder& folder, const std::string& csv) {
  return {"study", "group_size", "--set", "accuracy.file=" + folder.write("accuracy.csv", csv)};
}

constexpr const char* kHeader =
    "model,num_key_value_heads,method,uptrained_steps,perplexity,choice_accuracy,recall_accuracy,command\n";

TEST_CASE("KV heads are chosen for each machine from speed, memory and measured accuracy", "[main]") {
  const Folder folder;
  const std::string csv =
      std::string(kHeader) +
      "dculab-tiny,8,none,0,2.50,,,\ndculab-tiny,4,mean,0,3.5,,,\ndculab-tiny,4,mean,500,2.55,,,\n" +
      "dculab-tiny,2,mean,500,2.60,,,\ndculab-tiny,1,mean,500,3.0,,,\n";
  const Json study = run_for_json(group_study(folder, csv));
  CHECK(study.at("speed_model") == "llama-2-7b");
  CHECK(study.at("accuracy_model") == "dculab-tiny");
  REQUIRE(study.at("machines").size() >= 6);
  for (const Json& machine : study.at("machines")) {
    INFO(machine.at("machine"));
    const Json& points = machine.at("points");
    REQUIRE(points.size() == 4);
    CHECK(points[1].at("method") == "mean, 500 steps");
    CHECK(points[3].at("loss").get<double>() == Approx(0.2));
    for (std::size_t index = 1; index < points.size(); ++index)
      CHECK(points[index].at("output_tokens_per_second").get<double>() >
            points[index - 1].at("output_tokens_per_second").get<double>());
    const int chosen = machine.at("recommendation").at("num_key_value_heads");
    CHECK(chosen >= 8);  // 4 would lose 20 %
    CHECK(machine.at("reason").get<std::string>().find("lose at most 5.0 %") != std::string::npos);
  }
}

TEST_CASE("a tolerance that nothing meets keeps every head") {
  const Folder folder;
  const std::string csv = std::string(kHeader) + "dculab-tiny,8,none,0,2.50,,,\ndculab-tiny,4,mean,0,3.5,,,\n";
  const Json study = run_for_json(group_study(folder, csv));
  for (const Json& machine : study.at("machines")) CHECK(machine.at("recommendation").at("num_key_value_heads") == 32);
}

// docs/reference/papers.md says so of the shipped accuracy file.
TEST_CASE("on the shipped model the tolerance decides the KV heads, on every machine alike", "[main]") {
  for (const auto& [tolerance, kv_heads] : {std::pair{"5 %", 32}, {"7 %", 16}, {"15 %", 8}}) {
    INFO(tolerance);
    const Json study = run_for_json({"study", "group_size", "--set", std::string("accuracy.tolerance=") + tolerance});
    for (const Json& machine : study.at("machines"))
      CHECK(machine.at("recommendation").at("num_key_value_heads") == kv_heads);
  }
}

TEST_CASE("accuracy files that cannot be weighed are refused") {
  const Folder folder;
  const std::string header(kHeader);
  check_refused(group_study(folder, header + "dculab-tiny,4,mean,0,3.5,,,\n"),
                {"accuracy.csv", "all of its 8 KV heads"});
  check_refused(group_study(folder, header + "dculab-tiny,8,none,0,2.5,,,\ndculab-tiny,3,mean,0,3.5,,,\n"),
                {"accuracy.csv", "3 does not divide the 8 query heads"});
  check_refused(group_study(folder, header + "dculab-tiny,8,none,0,none,,,\n"), {"accuracy.csv", "perplexity"});
  check_refused({"study", "group_size", "--set", "accuracy.file=" + folder.path("nothing.csv")}, {"nothing.csv"});
  Arguments two_axes = group_study(folder, header + "dculab-tiny,8,none,0,2.5,,,\n");
  two_axes.insert(two_axes.end(), {"--set", "sweep.kv_cache.block_size=[8, 16]"});
  check_refused(two_axes, {"sweep must be over model.num_key_value_heads alone"});
}

TEST_CASE("predict prices rounded activations, narrow KV and cached prefixes") {
  const auto step = [](const Arguments& more, const char* model = "llama-3-8b") {
    Arguments arguments{"predict", "--model", model, "--machine", "z100", "--context", "4096"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_for_json(arguments).at("step_seconds").get<double>();
  };
  const Arguments prefill{"--phase", "prefill", "--weights", "gptq-int4"};
  Arguments rounded = prefill, cached = prefill;
  rounded.insert(rounded.end(), {"--activations", "int8"});
  cached.insert(cached.end(), {"--set", "workload.cached_tokens=3072"});
  CHECK(step(rounded) < step(prefill));
  CHECK(step(cached) < 0.5 * step(prefill));
  const double f16 = step({"--batch", "16"});
  for (const char* dtype : {"int8", "kivi4"}) CHECK(step({"--batch", "16", "--kv-cache-dtype", dtype}) < f16);
  // Our kernel takes two query heads at a time there: it unpacks codes once for each two of a group.
  CHECK(step({"--batch", "16", "--kv-cache-dtype", "kivi2"}) > f16);
  CHECK(step({"--batch", "8", "--kv-cache-dtype", "kivi2"}, "llama-2-7b") < step({"--batch", "8"}, "llama-2-7b"));
  check_refused({"predict", "--model", "llama-3-8b", "--machine", "z100", "--activations", "int4"},
                {"--activations int4"});
}

}  // namespace
}  // namespace dculab::cli::test

// `dculab predict`: the JSON that others rely on, and prices that no machine could beat.
#include <algorithm>
#include <map>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

Arguments predict_decode(const Arguments& more) {
  Arguments arguments{"predict", "--model", "llama-3-8b", "--machine", "z100", "--batch", "16", "--context", "2048"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("a prediction has a step, an interval around it, and ops that add up to it", "[main]") {
  for (const char* phase : {"prefill", "decode"}) {
    INFO(phase);
    const Json prediction = run_for_json(predict_decode({"--phase", phase}));
    CHECK(prediction.at("schema") == "dculab/predict/1");
    const double step = prediction.at("step_seconds");
    const Json& interval = prediction.at("interval_seconds");
    REQUIRE(interval.size() == 2);
    CHECK(interval[0].get<double>() < step);
    CHECK(interval[1].get<double>() > step);
    double sum = prediction.at("host_seconds");
    for (const Json& op : prediction.at("ops")) {
      INFO(op.dump());
      sum += op.at("seconds").get<double>();
      CHECK(op.at("count").get<int>() >= 1);
      CHECK(op.at("flops").get<double>() >= 0);
      CHECK_FALSE(op.at("bound").get<std::string>().empty());
      // A product asks for a line piece by piece, and may fetch it more than once; these kernels do not.
      const std::string name = op.at("op");
      const bool is_whole = name.starts_with("attention") || name == "silu_and_mul";
      double above = std::numeric_limits<double>::infinity();
      for (const char* level : {"L1", "L2", "DRAM"}) {
        const double bytes = op.at("bytes").at(level);
        CHECK(bytes > 0);
        if (is_whole) CHECK(bytes <= above);
        above = bytes;
        CHECK(op.at("hit_rate").at(level).get<double>() >= 0);
        CHECK(op.at("hit_rate").at(level).get<double>() <= 1);
      }
    }
    CHECK(sum == Approx(step));
  }
}

TEST_CASE("tokens are counted beyond 2^31: a larger batch takes more FLOP and more time, up to the largest step") {
  const auto prefill = [](const char* batch, const char* context) {
    return run_for_json({"predict", "--model", "llama-3.1-8b", "--machine", "h100-sxm", "--phase", "prefill", "--batch",
                         batch, "--context", context, "--set", "model.max_position_embeddings=16777216"});
  };
  double last = 0;
  for (const char* batch : {"16383", "16384", "32768", "65536"}) {
    const Json prediction = prefill(batch, "131072");
    CHECK(prediction.at("step_seconds").get<double>() > last);
    last = prediction.at("step_seconds");
    for (const Json& op : prediction.at("ops"))
      CHECK((op.at("flops").get<double>() > 0 || op.at("op") == "embed_tokens"));
  }
  CHECK(prefill("65536", "16777216").at("step_seconds").get<double>() > last);
}

TEST_CASE("no step on a Z100 is below its bytes over the bandwidth, and more KV heads are never faster") {
  const Json facts = run_for_json(predict_decode({})).at("machine_facts").at("z100");
  const double bandwidth = facts.at("memory").back().at("bytes_per_second");
  REQUIRE(bandwidth > 500e9);
  for (const char* block_size : {"1", "16", "128"}) {
    double fewer_heads = 0;
    for (const int kv_heads : {1, 8, 32}) {
      INFO(block_size << " tokens per block, " << kv_heads << " KV heads");
      const Json prediction = run_for_json(
          predict_decode({"--phase", "decode", "--block-size", block_size, "--kv-heads", std::to_string(kv_heads)}));
      const double layer = 2 * 4096.0 * 4096 + 2 * 4096.0 * 128 * kv_heads + 3 * 4096.0 * 14336;
      const double weights = 2 * (32 * layer + 128256 * 4096.0);
      const double kv = 16 * 2048.0 * 32 * 2 * 128 * kv_heads * 2;
      const double caches = 16 * 1024 * 1024;  // L1 and L2 of all units hold less
      const double step = prediction.at("step_seconds");
      CHECK(step >= (weights + kv - caches) / bandwidth);
      CHECK(step < 3 * (weights + kv) / bandwidth);
      CHECK(step > fewer_heads);
      CHECK(prediction.at("interval_seconds")[0].get<double>() >= (weights + kv - caches) / bandwidth);
      for (const Json& op : prediction.at("ops"))
        CHECK(op.at("seconds").get<double>() >= op.at("bytes").at("DRAM").get<double>() / bandwidth * (1 - 1e-9));
      fewer_heads = step;
    }
  }
}

TEST_CASE("--set and the options mean the same") {
  const Json by_option =
      run_for_json(predict_decode({"--kv-heads", "4", "--block-size", "64", "--weights", "gptq-int4"}));
  const Json by_key = run_for_json(
      predict_decode({"--set", "model.num_key_value_heads=4", "kv_cache.block_size=64", "weights=gptq-int4"}));
  CHECK(by_option == by_key);
}

TEST_CASE("several devices share a step: a part of every layer each, and what they exchange", "[main]") {
  const auto with = [](const char* devices) {
    return run_for_json(predict_decode({"--set", std::string("deployment.tensor_parallel_size=") + devices}));
  };
  const Json one = with("1"), four = with("4");
  CHECK(four.at("tensor_parallel_size") == 4);
  CHECK(four.at("step_seconds") < one.at("step_seconds"));
  CHECK(four.at("max_sequences").get<double>() > 4 * one.at("max_sequences").get<double>());  // weights are shared too
  std::map<std::string, Json> ops;
  for (const Json& op : four.at("ops")) ops[op.at("op")] = op;
  CHECK(ops.at("mlp_all_reduce").at("bound") == "exchange");
  CHECK(ops.at("mlp_all_reduce").at("count") == 32);
  for (const Json& op : one.at("ops"))
    if (op.at("op") == "down_proj") CHECK(op.at("flops") == 4 * ops.at("down_proj").at("flops").get<double>());

  const Json study = run_for_json({"study", "llama3_on_dcu", "--set", "machines=[mi300x]", "--set",
                                   "sweep={deployment.tensor_parallel_size: [1, 2, 4]}"});
  const Json& points = study.at("machines").at(0).at("points");
  REQUIRE(points.size() == 3);
  CHECK(points.at(2).at("step_seconds") < points.at(0).at("step_seconds"));
}

TEST_CASE("devices that cannot share a step are refused in words") {
  const auto refused = [](const char* setting, const std::vector<std::string>& words) {
    check_refused(predict_decode({"--set", setting}), words);
  };
  const Finished by_three =
      run_dculab(predict_decode({"--set", "deployment.tensor_parallel_size=3"}));  // a line for each
  CHECK(by_three.exit_code == 2);
  CHECK_THAT(by_three.err, ContainsSubstring("32 query heads do not divide over 3 devices\n") &&
                               ContainsSubstring("8 KV heads do not divide over 3 devices\n"));
  refused("deployment.pipeline_parallel_size=2", {"share every layer", "`dculab simulate`"});
  check_refused(predict_decode({"--stack", "llama.cpp", "--set", "deployment.tensor_parallel_size=2"}),
                {"llama.cpp-hip gives each device whole layers"});
  check_refused({"replay", "--model", "llama-3-8b", "--machine", "z100", "--set", "deployment.tensor_parallel_size=2"},
                {"deployment: a replay is of one device"});
}

TEST_CASE("a format that the machine has no published rate for is said") {
  const std::string on_z100 = run_dculab(predict_decode({})).out;
  CHECK_THAT(on_z100, ContainsSubstring("warning: weights in bf16: predicted with a conversion to f16, the format "
                                        "of the activations\n"));
  CHECK_THAT(run_dculab(predict_decode({"--kv-cache-dtype", "fp8_e4m3"})).out,
             ContainsSubstring("warning: KV cache in fp8_e4m3: z100 has no such arithmetic"));
  CHECK(run_for_json(predict_decode({"--weights", "f16"})).at("warnings").empty());
  const Json full = run_for_json(predict_decode({"--weights", "f16", "--set", "workload.batch=400"}));
  REQUIRE(full.at("warnings").size() == 1);
  CHECK_THAT(full.at("warnings")[0].get<std::string>(), ContainsSubstring("this batch does not fit"));
  CHECK_THAT(
      run_dculab(predict_decode({"--set", "model=llama-13b", "--set", "machine=mi50"})).out,
      ContainsSubstring("warning: llama-13b does not fit: 24.2 GiB of weights leave no room for a KV block in the "
                        "memory of mi50"));
}

TEST_CASE("what all query heads share is told as what it is, and one of a thing in the singular") {
  const std::string out = run_dculab({"predict", "--model", "deepseek-v2-lite", "--machine", "h800"}).out;
  CHECK_THAT(out, ContainsSubstring("latents of 576 values for 16 query heads, block size"));
  CHECK_THAT(out, !ContainsSubstring("KV head"));
  CHECK_THAT(run_dculab(predict_decode({"--set", "model.num_key_value_heads=1"})).out,
             ContainsSubstring(" 1 KV head (group size 32)"));
}

TEST_CASE("a result goes to a file or to the terminal", "[main]") {
  const Folder folder;
  const std::string file = folder.path("step.json");
  const Finished done = run_dculab(predict_decode({"--format", "json", "--output", file}));
  CHECK(done.exit_code == 0);
  CHECK(done.out.empty());
  CHECK(Json::parse(read(file)) == run_for_json(predict_decode({})));
  CHECK(folder.entries() == std::vector<std::string>{"step.json"});
}

TEST_CASE("a prediction names the assumed figures to which it is sensitive, and by how much") {
  const Json prediction = run_for_json(predict_decode({"--weights", "f16"}));
  const Json& assumed = prediction.at("assumed");
  double last = 1;
  for (const Json& each : prediction.at("leans_on")) {
    INFO(each.dump());
    const double change = each.at("change");
    CHECK(change >= 0.01);
    CHECK(change <= last);
    CHECK(std::count(assumed.begin(), assumed.end(), each.at("key")) == 1);
    CHECK_FALSE(each.at("source").get<std::string>().empty());
    last = change;
  }
  // Decode reads: 10 % less of the share of the bandwidth that is reached takes up to 1 / 0.9 of the time.
  REQUIRE_FALSE(prediction.at("leans_on").empty());
  const auto bandwidth = std::ranges::find_if(
      prediction.at("leans_on"), [](const Json& each) { return each.at("key") == "sustained.dram_bandwidth"; });
  REQUIRE(bandwidth != prediction.at("leans_on").end());
  CHECK(bandwidth->at("change").get<double>() > 0.05);
  CHECK(bandwidth->at("change").get<double>() < 0.112);
  const std::string first = prediction.at("leans_on").front().at("key");
  CHECK_THAT(
      run_dculab(predict_decode({"--weights", "f16"})).out,
      ContainsSubstring("input sensitivity (change of the time when an assumed figure changes by 10 %): " + first));
}

TEST_CASE("an inferred figure is named like an assumed one, and marked") {
  const std::string card = run_dculab(predict_decode({"--set", "machine=k500sm-ai"})).out;
  CHECK_THAT(card, ContainsSubstring("memory.DRAM.bandwidth (inferred) "));
  CHECK_THAT(run_dculab(predict_decode({"--set", "machine=h200", "--stack", "vllm"})).out,
             ContainsSubstring("sustained.dram_bandwidth (inferred) "));
}

TEST_CASE("a figure of the stack that the scenario sets counts, and is told with the key that sets it") {
  const double alone = run_for_json(predict_decode({})).at("step_seconds");
  const Json slower = run_for_json(predict_decode({"--set", "stack.host.per_step=1 s"}));
  CHECK(slower.at("step_seconds").get<double>() > alone + 0.9);
  REQUIRE_FALSE(slower.at("leans_on").empty());
  CHECK(slower.at("leans_on").front().at("key") == "stack.host.per_step");
  CHECK(slower.at("leans_on").front().at("source") == "assumed: set by the scenario");
  CHECK(slower.at("stack_figures").front() ==
        Json{{"key", "stack.host.per_step"}, {"value", "1 s"}, {"kind", "assumed"}, {"source", "set by the scenario"}});
}

TEST_CASE("--stack keeps the figures that --set gives a stack, and no setting goes without effect") {
  const Json vllm = run_for_json(
      predict_decode({"--set", "machine=h100-sxm", "--stack", "vllm", "--set", "stack={kernels_per_op: 2}"}));
  CHECK(vllm.at("stack") == "vllm-cuda");
  CHECK(std::ranges::any_of(vllm.at("stack_figures"), [](const Json& each) {
    return each.at("key") == "stack.kernels_per_op" && each.at("value") == "2";
  }));
  const auto refused = [](const Arguments& more, const std::vector<std::string>& words) {
    check_refused(predict_decode(more), words);
  };
  refused({"--set", "machine=h100-sxm", "--stack", "vllm", "--set", "attention.partition_tokens=256"},
          {"attention.partition_tokens: is of our own kernels", "stack.parameters"});
  refused({"--set", "machine=h100-sxm", "--stack", "vllm", "--set",
           "stack.parameters.vllm_paged_attention.partition_size=256"},
          {"vllm_paged_attention runs nothing here", "flash_attention_3"});
  refused({"--set", "machine=a100-80gb-sxm", "--stack", "gpt-fast"}, {"stack gpt-fast: runs at most 1 sequences"});
  refused({"--set", "deployment={tensor_parallel_size: 2, routing: random}"},
          {"deployment.routing", "changes no step"});
  refused({"--set", "stack.reached.matmul_compute=2 x"}, {"'2 x' takes it out of range"});
  refused({"--weights", "gptq-int4", "--set", "model=llama-2-7b", "--set", "deployment.tensor_parallel_size=4"},
          {"down_proj has 2752 in-features on each of 4 devices, no whole groups of 128"});
  const Json linked =
      run_for_json(predict_decode({"--set", "machine.direct_peers=3"}));  // which the file states no more than 0 of
  CHECK(linked.at("redesign").at("set").front() == "direct_peers");
}

TEST_CASE("a kernel's parameter is an axis: as many segments take as long as predict says") {
  const Folder folder;
  const std::string key = "stack.parameters.triton_unified_attention_3d.segments";
  const std::string scenario = folder.write("s.yaml",
                                            "schema: dculab/scenario/1\nquestion: q\nmodel: llama-3-8b\n"
                                            "machine: mi300x\nstack: vllm-triton\n"
                                            "workload: {phase: decode, batch: 1, context_tokens: 8192}\n"
                                            "sweep: {" +
                                                key + ": [4, 16, 64]}\n");
  const Json points = run_for_json({"study", scenario}).at("machines")[0].at("points");
  REQUIRE(points.size() == 3);
  for (const Json& point : points) {
    const std::string segments = point.at("choices").at(key);
    const Json step = run_for_json({"predict", "--model", "llama-3-8b", "--machine", "mi300x", "--stack", "vllm-triton",
                                    "--batch", "1", "--context", "8192", "--set", key + "=" + segments});
    CHECK(step.at("step_seconds") == point.at("step_seconds"));
    const bool is_stated =
        std::ranges::any_of(step.at("stack_figures"), [&](const Json& each) { return each.at("key") == key; });
    CHECK(is_stated == (segments != "16"));
  }
  CHECK(points[0].at("step_seconds").get<double>() > points[2].at("step_seconds").get<double>());
}

TEST_CASE("studies, simulations and validations name the assumed figures to which they are sensitive") {
  const Json study = run_for_json({"study", "llama3_on_dcu"});
  for (const Json& machine : study.at("machines")) CHECK_FALSE(machine.at("leans_on").empty());
  const Json served = run_for_json({"simulate", "serving/llama3_on_z100", "--set", "sweep.machine=[z100, k100-ai]"});
  for (const char* machine : {"z100", "k100-ai"}) CHECK_FALSE(served.at("leans_on").at(machine).empty());
  const Json scores = run_for_json({"validate", "--points", DCULAB_SOURCE_DIR "/tests/data/published_points.csv"});
  for (const Json& point : scores.at("points")) {
    const std::string machine = point.at("machine").get<std::string>() + " with ";
    CHECK(std::ranges::any_of(scores.at("leans_on").items(),
                              [&machine](const auto& each) { return each.key().starts_with(machine); }));
  }
}

}  // namespace
}  // namespace dculab::cli::test

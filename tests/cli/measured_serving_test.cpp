// `dculab bench --workload SCENARIO` and `dculab study SCENARIO --measure`: requests served in real time.
#include <cmath>

#include "tests/cli/generous_cpu.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const char* const kChat = "serving/chat_on_cpu";
const Arguments kFewAtOnce{"--set", "workload.requests=12", "--set",
                           "sweep={workload.requests_per_second: [300, 900]}"};

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("bench serves a scenario's requests and prints simulate's figures of them") {
  const Folder folder;
  const std::string trace = folder.path("trace.jsonl");
  const Json bench =
      run_for_json(with({"bench", "--workload", kChat, "--trace", trace, "--set", "measure.threads=1"}, kFewAtOnce));
  const Json simulated = run_for_json(with({"simulate", kChat}, kFewAtOnce)).at("simulations");
  CHECK(bench.at("schema") == "dculab/bench-scenario/1");
  const Json& runs = bench.at("runs");
  REQUIRE(runs.size() == 2);
  for (std::size_t point = 0; point < runs.size(); ++point) {
    const Json& run = runs.at(point);
    CHECK(run.at("choices") == simulated.at(point).at("choices"));
    for (const char* same : {"requests", "prompt_tokens", "output_tokens"})
      CHECK(run.at(same) == simulated.at(point).at(same));
    for (const char* metric : {"total_time", "requests_per_second", "ttft_p50", "ttft_p99", "tpot_p50", "itl_p99"}) {
      CHECK(simulated.at(point).at(metric).get<double>() > 0);
      CHECK(run.at(metric).get<double>() > 0);
    }
    CHECK(run.at("busy_seconds").get<double>() <= run.at("total_time").get<double>());
  }
  const Json fitted = run_for_json({"validate", trace, "--machine", folder.write("cpu.yaml", kGenerousCpu)});
  CHECK(fitted.at("points").size() + fitted.at("refused").size() >= 24);
}

TEST_CASE("a GPU serves a scenario's requests too") {
  const Arguments few{"bench",
                      "--workload",
                      kChat,
                      "--set",
                      "model=dculab-tiny-draft",
                      "--set",
                      "sweep={workload.requests_per_second: [300]}",
                      "--set",
                      "workload.requests=2",
                      "--set",
                      "workload.prompt_tokens=6",
                      "--set",
                      "workload.output_tokens=3"};
  const Json run = run_for_json(with(few, {"--device", "host-gpu"})).at("runs").at(0);
  CHECK(run.at("requests") == 2);
  CHECK(run.at("num_blocks") == run_for_json(few).at("runs").at(0).at("num_blocks"));
  CHECK(run.at("ttft_p50").get<double>() > 0);
  check_refused(with(few, {"--device", "host-gpu", "--set", "deployment={data_parallel_size: 2}"}),
                {"--device", "share the CPU"});
}

TEST_CASE("what a scenario says itself is refused beside it, and what is of scenarios elsewhere") {
  const Arguments bench{"bench", "--workload", kChat};
  check_refused(with(bench, {"--model", "dculab-tiny"}), {"--model", "--set KEY=VALUE"});
  check_refused(with(bench, {"--block-size", "16"}), {"--block-size"});
  check_refused(with(bench, {"--set", "deployment={tensor_parallel_size: 2}"}), {"deployment", "one device each"});
  check_refused(
      with(bench, {"--set", "deployment={prefill_replicas: 1, decode_replicas: 1, kv_transfer: {latency: 1 ms}}"}),
      {"deployment", "through this machine's memory"});
  check_refused(with(bench, {"--data-parallel-size", "2"}), {"--data-parallel-size", "--set KEY=VALUE"});
  check_refused(with(bench, {"--set", "sweep={machine: [z100, k100]}"}), {"sweep.machine", "this machine"});
  check_refused({"bench", "--workload", "quickstart"}, {"workload", "no requests"});
  check_refused({"bench"}, {"--model", "is missing"});
  const std::string conversations = DCULAB_SOURCE_DIR "/scenarios/workloads/dculab-tiny-sharegpt.json";
  check_refused({"bench", "--model", "dculab-tiny", "--workload", conversations, "--set", "seed=1"}, {"--set"});
  check_refused({"bench", "--model", "dculab-tiny", "--workload", conversations, "--trace", "t.jsonl"}, {"--trace"});
}

TEST_CASE("a study that serves compares engine and simulator metric by metric at every point", "[main]") {
  const Folder folder;
  const std::string machine = folder.path("served.yaml");
  const Json study = run_for_json(with({"study", kChat, "--measure", "--host", folder.write("cpu.yaml", kGenerousCpu),
                                        "--machine-file", machine, "--set", "measure.repeats=1"},
                                       kFewAtOnce));
  REQUIRE(study.at("points").size() == 2);
  CHECK(study.at("compared") == 10);
  int within = 0, inside = 0;
  for (const Json& point : study.at("points"))
    for (const char* metric : {"output_tokens_per_second", "ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99"}) {
      const Json& both = point.at("metrics").at(metric);
      const double simulated = both.at("simulated"), measured = both.at("measured"), limit = both.at("limit");
      CHECK(simulated > 0);
      CHECK(measured > 0);
      CHECK(both.at("within").get<bool>() == (std::abs(simulated / measured - 1) <= limit));
      within += both.at("within").get<bool>() ? 1 : 0;
      const double low = both.at("interval").at(0), high = both.at("interval").at(1);
      CHECK(low <= simulated);
      CHECK(high >= simulated);
      inside += measured >= low && measured <= high ? 1 : 0;
    }
  CHECK(study.at("within") == within);
  CHECK(study.at("inside_interval") == inside);
  CHECK(run_for_json({"simulate", kChat, "--set", "machine=" + machine}).at("simulations").size() == 3);
  check_refused({"study", kChat, "--measure", "--set", "deployment={data_parallel_size: 3}", "--host", machine},
                {"--measure", "3 replicas do not get a core each"});
  const std::vector<std::string> study_here{"study", kChat, "--measure", "--host", machine};
  check_refused(with(study_here, {"--set", "sweep={engine.max_num_seqs: [4, 8]}", "--set",
                                  "workload={requests: 12, prompt_tokens: 20, output_tokens: 5}"}),
                {"workload", "no other requests"});
}

TEST_CASE("bench serves a scenario with replicas, and with prefill and decode apart", "[main]") {
  const Json bench = run_for_json({"bench", "--workload", kChat, "--set", "workload.requests=12", "--set",
                                   "engine.max_num_seqs=8", "--set",
                                   "sweep={deployment: [{data_parallel_size: 2, routing: least_tokens}, "
                                   "{prefill_replicas: 1, decode_replicas: 1}, "
                                   "{prefill_replicas: 2, decode_replicas: 1, role_switching: {hold: 0 s}}]}"});
  const Json& runs = bench.at("runs");
  REQUIRE(runs.size() == 3);
  for (const Json& run : runs) {
    CHECK(run.at("requests") == 12);
    CHECK(run.at("output_tokens") == runs.at(0).at("output_tokens"));
    CHECK(run.at("prompt_tokens") == runs.at(0).at("prompt_tokens"));
  }
  for (const Json& replica : runs.at(0).at("replicas")) {
    CHECK(replica.at("role") == "both");
    CHECK(replica.at("requests").get<int>() > 0);
    CHECK(replica.at("bytes_handed_over") == 0);
  }
  const Json& prefill = runs.at(1).at("replicas").at(0);
  CHECK(prefill.at("role") == "prefill");
  CHECK(prefill.at("prompts_handed_over") == 12);
  CHECK(prefill.at("bytes_handed_over").get<double>() > 0);
  CHECK(prefill.at("sending_seconds").get<double>() > 0);
  CHECK(runs.at(1).at("replicas").at(1).at("receiving_seconds").get<double>() > 0);
  CHECK(runs.at(2).at("replicas").size() == 3);
}

TEST_CASE("a study serves replicas beside their simulation, each predicted on its share of the machine") {
  const Folder folder;
  const Json study =
      run_for_json({"study", "measured/replicas", "--measure", "--host", folder.write("cpu.yaml", kGenerousCpu),
                    "--set", "measure.repeats=1", "--set", "workload.requests=8", "--set",
                    "workload.requests_per_second=100", "--set", "engine.max_num_seqs=8", "--set",
                    "sweep={deployment: [{data_parallel_size: 2}, {prefill_replicas: 1, decode_replicas: 1}]}"});
  const Json& points = study.at("points");
  REQUIRE(points.size() == 2);
  CHECK(study.at("compared") == 10);
  CHECK(points.at(0).at("replicas").size() == 2);
  CHECK(points.at(1).at("replicas").at(0).at("role") == "prefill");
  for (const Json& point : points)
    for (const auto& [metric, both] : point.at("metrics").items()) {
      INFO(metric);
      CHECK(both.at("simulated").get<double>() > 0);
      CHECK(both.at("measured").get<double>() > 0);
    }
}

TEST_CASE("two sets of KV heads are served and simulated side by side") {
  const Folder folder;
  const Arguments burst{"--set", "workload.requests=12",  "--set", "workload.requests_per_second=1000000",
                        "--set", "engine.max_num_seqs=4", "--set", "engine.groups_by_load.waiting_below=3"};
  const Json runs = run_for_json(with({"bench", "--workload", "measured/groups_by_load"}, burst)).at("runs");
  REQUIRE(runs.size() == 3);
  for (const Json& run : runs) {
    const Json& sets = run.at("groups_by_load");
    CHECK(sets.at("num_key_value_heads") == Json{8, 2});
    CHECK(sets.at("requests").at(0).get<int>() + sets.at("requests").at(1).get<int>() == 12);
    CHECK(sets.at("output_tokens").at(0).get<int>() + sets.at("output_tokens").at(1).get<int>() ==
          run.at("output_tokens"));
    CHECK(sets.at("steps").get<int>() + sets.at("steps_of_both").get<int>() == run.at("steps"));
    CHECK(sets.at("second_set_weight_bytes").get<double>() > 6e6);
  }
  CHECK(runs.at(0).at("groups_by_load").at("requests") == Json{12, 0});
  CHECK(runs.at(1).at("groups_by_load").at("requests").at(1).get<int>() >= 4);
  CHECK(runs.at(1).at("groups_by_load").at("requests").at(0).get<int>() >= 1);
  CHECK(runs.at(1).at("groups_by_load").at("steps_of_both").get<int>() > 0);
  CHECK(runs.at(2).at("groups_by_load").at("requests") == Json{0, 12});
  const Json study = run_for_json({"study", "measured/groups_by_load", "--measure", "--host",
                                   folder.write("cpu.yaml", kGenerousCpu), "--set", "measure.repeats=1", "--set",
                                   "workload.requests=12", "--set", "workload.requests_per_second=200", "--set",
                                   "engine.groups_by_load={num_key_value_heads: 2, waiting_above: 2, waiting_below: 1}",
                                   "--set", "sweep={engine.groups_by_load.heads: [by_load, few]}"});
  CHECK(study.at("compared") == 10);
  for (const Json& point : study.at("points"))
    for (const char* side : {"simulated", "measured"}) {
      const Json& sets = point.at("groups_by_load").at(side);
      CHECK(sets.at("requests").at(0).get<int>() + sets.at("requests").at(1).get<int>() == 12);
    }
  check_refused(
      {"bench", "--workload", "measured/groups_by_load", "--device", "host-gpu", "--set", "workload.requests=2"},
      {"--device cpu"});
}

TEST_CASE("a simulation of two sets of KV heads says who got which") {
  const Json all =
      run_for_json({"simulate", "serving/groups_by_load_on_z100", "--set", "workload.requests=40"}).at("simulations");
  REQUIRE(all.size() == 3);
  CHECK(all.at(0).at("groups_by_load").at("requests") == Json{40, 0});
  CHECK(all.at(2).at("groups_by_load").at("requests") == Json{0, 40});
  CHECK(all.at(1).at("requests_with_few_heads") == all.at(1).at("groups_by_load").at("requests").at(1));
  CHECK(run_dculab({"simulate", "serving/groups_by_load_on_z100", "--set", "workload.requests=20", "--set",
                    "sweep={engine.groups_by_load.heads: [by_load]}"})
            .out.find("KV heads by load: ") != std::string::npos);
}

TEST_CASE("bench serves conversations with replicas") {
  const std::string conversations = DCULAB_SOURCE_DIR "/scenarios/workloads/dculab-tiny-sharegpt.json";
  const Arguments bench{"bench", "--model", "dculab-tiny", "--workload", conversations, "--num-prompts", "12"};
  const Json one = run_for_json(bench).at("rows").at(0);
  const Json two = run_for_json(with(bench, {"--data-parallel-size", "2", "--routing", "least_requests"}));
  CHECK(two.at("data_parallel_size") == 2);
  for (const char* same : {"requests", "prompt_tokens", "generated_tokens"})
    CHECK(two.at("rows").at(0).at(same) == one.at(same));
  const Json cached =
      run_for_json(with(bench, {"--enable-prefix-caching", "--prefix-eviction", "lfu"})).at("rows").at(0);
  CHECK(cached.at("generated_tokens") == one.at("generated_tokens"));
  check_refused(with(bench, {"--prefix-eviction", "lfu"}), {"--prefix-eviction", "--enable-prefix-caching"});
  check_refused(with(bench, {"--routing", "random"}), {"--routing", "--data-parallel-size"});
  check_refused(with(bench, {"--data-parallel-size", "2", "--routing", "nearest"}), {"--routing", "not a routing"});
  check_refused(with(bench, {"--data-parallel-size", "2", "--device", "host-gpu"}), {"--device cpu"});
}

}  // namespace
}  // namespace dculab::cli::test

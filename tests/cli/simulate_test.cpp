// `dculab simulate`: requests served under a virtual clock.
#include <algorithm>
#include <regex>
#include <set>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const char* const kServing = "serving/llama3_on_z100";

TEST_CASE("a load that rises is served with latencies that rise, and the best goodput is named") {
  const Json report = run_for_json({"simulate", kServing});
  CHECK(report.at("schema") == "dculab/simulate/1");
  const Json& all = report.at("simulations");
  REQUIRE(all.size() == 5);
  double last_ttft = 0, best = 0;
  std::size_t best_index = 0;
  for (std::size_t index = 0; index < all.size(); ++index) {
    const Json& each = all.at(index);
    CHECK(each.at("requests") == 300);
    CHECK(each.at("ttft_p50").get<double>() <= each.at("ttft_p99").get<double>());
    CHECK(each.at("ttft_p99").get<double>() >= last_ttft);
    last_ttft = each.at("ttft_p99").get<double>();
    CHECK(each.at("goodput").get<double>() <= each.at("requests_per_second").get<double>());
    if (each.at("goodput").get<double>() > best) {
      best = each.at("goodput").get<double>();
      best_index = index;
    }
  }
  CHECK(report.at("best") == Json::array({best_index}));
}

TEST_CASE("a single simulation tells what it did over time, in JSON and for Perfetto", "[main]") {
  const Folder folder;
  const std::string trace = folder.path("trace.json");
  const Json report = run_for_json({"simulate", kServing, "--set", "workload.requests_per_second=2", "--set",
                                    "workload.requests=40", "--chrome-trace", trace});
  const Json& run = report.at("simulations").at(0);
  double busy = 0;
  for (const Json& interval : run.at("timeline")) busy += interval.at("busy_seconds").get<double>();
  CHECK(busy == Approx(run.at("busy_seconds").get<double>()));
  const Json events = Json::parse(read(trace));
  int steps = 0;
  for (const Json& event : events) steps += event.at("ph") == "X" ? 1 : 0;
  CHECK(steps == run.at("steps"));
}

TEST_CASE("a simulation says what it rests on and between what its figures lie") {
  const auto simulated = [](const std::string& machine) {
    return run_for_json({"simulate", kServing, "--set", "workload.requests_per_second=1", "--set",
                         "workload.requests=40", "--set", "machine=" + machine})
        .at("simulations")
        .at(0);
  };
  const Json run = simulated("z100");
  CHECK(run.at("basis") == "priors");
  CHECK(run.at("step_time_interval").at(0).get<double>() < 0.8);
  CHECK(run.at("step_time_interval").at(1).get<double>() > 1.25);
  for (const auto& [metric, interval] : run.at("intervals").items()) {
    INFO(metric);
    CHECK(interval.at(0).get<double>() <= run.at(metric).get<double>());
    CHECK(interval.at(1).get<double>() >= run.at(metric).get<double>());
  }
  for (const std::string metric : {"steps", "total_time", "ttft_p50", "tpot_p50", "latency_p99"}) {
    INFO(metric);
    CHECK(run.at("intervals").at(metric).at(0) < run.at("intervals").at(metric).at(1));
  }
  const Json& tpot = run.at("intervals").at("tpot_p50");
  CHECK(tpot.at(1).get<double>() > 1.25 * run.at("tpot_p50").get<double>());  // queues make it more than the steps are
  CHECK(tpot.at(0).get<double>() < 0.8 * run.at("tpot_p50").get<double>());
  const std::string sweep = run_dculab({"simulate", kServing, "--set", "workload.requests=40"}).out;
  CHECK_THAT(sweep, ContainsSubstring("times their predicted time at 90 % (priors"));
}

TEST_CASE("conversations are counted by the model's tokenizer") {
  const Json report = run_for_json({"simulate", "serving/conversations_on_cpu"});
  const Json& run = report.at("simulations").at(0);
  CHECK(run.at("requests") == 60);
  CHECK(run.at("output_tokens").get<int>() > 60 * 4);
  CHECK(run.at("prompt_tokens").get<int>() > 60 * 4);
}

// The shipped server with `cores` cores, and what else it has as a whole: no honest step of a core here is faster.
std::string server_of(const Folder& folder, int cores) {
  std::string yaml = read(DCULAB_SOURCE_DIR "/hwmodels/x86-server.yaml");
  const std::string key = "compute_units: {value: ";
  const std::size_t begin = yaml.find(key) + key.size();
  yaml.replace(begin, yaml.find(',', begin) - begin, std::to_string(cores));
  return folder.write("host.yaml", std::regex_replace(yaml, std::regex(", per_unit_clock: [^,]+"), ""));
}

Arguments tiny(const std::string& machine, Arguments more = {}) {
  Arguments arguments{"simulate", kServing};
  for (const std::string& change :
       {std::string("model=dculab-tiny"), std::string("weights=checkpoint"), "machine=" + machine,
        std::string("workload.requests=12"), std::string("workload.prompt_tokens=40"),
        std::string("workload.output_tokens=10"), std::string("workload.requests_per_second=500")}) {
    arguments.push_back("--set");
    arguments.push_back(change);
  }
  arguments.push_back("--measure");
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("the engine here serves what was simulated", "[main]") {
  const Folder folder;
  const Json report = run_for_json(tiny(server_of(folder, 1)));
  const Json& measured = report.at("simulations").at(0).at("measured");
  CHECK(measured.at("output_tokens").at("measured") == 120);
  CHECK(measured.at("output_tokens").at("simulated") == 120);
  for (const char* metric : {"steps", "total_time", "ttft_p50", "tpot_p50", "latency_p99"})
    for (const char* side : {"simulated", "measured"}) CHECK(measured.at(metric).at(side).get<double>() > 0);
}

TEST_CASE("what the engine here cannot run as it was simulated is not measured") {
  const Folder folder;
  check_refused(tiny(server_of(folder, 4096)), {"--measure", "has 4096 cores, this machine"});
  const std::string one = server_of(folder, 1);
  check_refused(tiny(one, {"--set", "measure.threads=2"}), {"measure.threads is 2", "has 1 cores"});
  check_refused(tiny(one, {"--set", "model={name: dculab-tiny, num_hidden_layers: 2}"}), {"changes of its shape"});
}

TEST_CASE("a swept machine serves on the machine of each point") {
  const auto served = [](const std::string& change) {
    return run_for_json({"simulate", kServing, "--set", "sweep.workload.requests_per_second=[1]", change,
                         "workload.requests=20"})
        .at("simulations");
  };
  const Json swept = served("sweep.machine=[z100,mi300x]"), alone = served("machine=mi300x");
  REQUIRE(swept.size() == 2);
  CHECK(swept.at(0).at("machine") == "z100");
  CHECK(swept.at(1).at("machine") == "mi300x");
  CHECK(swept.at(0).at("busy_seconds") != swept.at(1).at("busy_seconds"));
  CHECK(swept.at(1).at("busy_seconds") == alone.at(0).at("busy_seconds"));
}

TEST_CASE("the figures of a machine that are swept are told apart from its own") {
  const Json report = run_for_json({"simulate", kServing, "--set", "sweep={}", "workload.requests=5",
                                    "sweep.machine.memory.DRAM.bandwidth=[0.5 x, 2 TB/s]"});
  int swept = 0;
  for (const Json& figure : report.at("machine_facts").at("z100").at("figures")) {
    if (figure.at("kind") != "swept") continue;
    ++swept;
    CHECK(figure.at("key") == "memory.DRAM.bandwidth");
    CHECK(figure.at("value") == "0.5 x, 2 TB/s");
  }
  CHECK(swept == 1);
}

TEST_CASE("preempted requests are swapped or recomputed, and either way are served") {
  const auto served = [](const Arguments& more) {
    Arguments arguments{"simulate",
                        kServing,
                        "--set",
                        "workload.requests_per_second=4",
                        "workload.requests=60",
                        "engine.max_num_seqs=256",
                        "workload.prompt_tokens=200",
                        "workload.output_tokens=1000",
                        "engine.gpu_memory_utilization=0.25"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_for_json(arguments).at("simulations").at(0);
  };
  const Json recomputed = served({}), swapped = served({"engine.preemption_mode=swap"});
  const Json little = served({"engine.preemption_mode=swap", "engine.swap_space=1 MiB"});
  CHECK(recomputed.at("preemptions").get<int>() > 0);
  CHECK_FALSE(recomputed.contains("swaps"));
  CHECK_FALSE(little.contains("swaps"));  // not one sequence fits
  CHECK(little.at("busy_seconds") == recomputed.at("busy_seconds"));
  const Json& swaps = swapped.at("swaps");
  CHECK(swaps.at("preemptions") == swapped.at("preemptions"));
  CHECK(swaps.at("bytes_in") == swaps.at("bytes_out"));
  CHECK(swaps.at("seconds") == swapped.at("seconds_by_bound").at("swap"));
  for (const Json* each : {&recomputed, &swapped}) CHECK(each->at("requests") == 60);
}

TEST_CASE("a Pareto front holds what no other point beats, on any number of threads") {
  const Arguments asked{"simulate", kServing,
                        "--set",    "workload.requests=40",
                        "--set",    "sweep={kv_cache.block_size: [1, 16, 256], engine.max_num_seqs: [4, 16, 64]}",
                        "--set",    "pareto={minimize: [tpot_p50], maximize: [output_tokens_per_second]}"};
  Arguments alone = asked;
  alone.insert(alone.end(), {"--threads", "1"});
  const Json report = run_for_json(asked);
  CHECK(report == run_for_json(alone));
  const Json& all = report.at("simulations");
  const auto figure = [&all](std::size_t index, const char* metric) { return all.at(index).at(metric).get<double>(); };
  const auto beats = [&](std::size_t a, std::size_t b) {
    const double latency = figure(a, "tpot_p50") - figure(b, "tpot_p50");
    const double rate = figure(b, "output_tokens_per_second") - figure(a, "output_tokens_per_second");
    return latency <= 0 && rate <= 0 && (latency < 0 || rate < 0 || a < b);  // of equal ones the first
  };
  const std::vector<std::size_t> front = report.at("pareto").at(0);
  REQUIRE(front.size() >= 2);
  for (std::size_t point = 0; point < all.size(); ++point) {
    bool is_beaten = false;
    for (std::size_t other = 0; other < all.size(); ++other) is_beaten = is_beaten || beats(other, point);
    INFO("point " << point);
    CHECK(is_beaten != (std::ranges::find(front, point) != front.end()));
  }
  CHECK_THAT(run_dculab(asked).out, ContainsSubstring("none is better in small tpot_p50, large"));
}

TEST_CASE("whole deployments are swept") {
  const Json report = run_for_json(
      {"simulate", "serving/llama3_70b_on_8_k100", "--set", "workload.requests=20",
       "sweep={deployment: [{tensor_parallel_size: 8}, {tensor_parallel_size: 4, data_parallel_size: 2}]}"});
  const Json& all = report.at("simulations");
  REQUIRE(all.size() == 2);
  CHECK(all.at(0).at("choices").at("deployment") == "{tensor_parallel_size: 8}");
  CHECK_FALSE(all.at(0).contains("replicas"));
  CHECK(all.at(1).at("replicas").size() == 2);
}

Json cluster(const std::string& deployment) {
  const Json report = run_for_json({"simulate", "serving/llama3_70b_on_8_k100", "--set", "workload.requests=40",
                                    "--set", "slo={slowdown: 1.5}", "--set", "deployment={" + deployment + "}"});
  return report.at("simulations").at(0);
}

TEST_CASE("eight devices share a model that none of them holds") {
  check_refused({"simulate", "serving/llama3_70b_on_8_k100", "--set", "deployment={data_parallel_size: 8}"},
                {"leaves no room for a KV block"});
  const Json shared = cluster("tensor_parallel_size: 8");
  CHECK(shared.at("requests") == 40);
  CHECK(shared.at("slowdown_p50").get<double>() >= 1);
  CHECK(shared.at("share_within_slo").get<double>() <= 1);
  CHECK(shared.at("seconds_by_bound").at("exchange").get<double>() > 0);
  CHECK_FALSE(shared.contains("replicas"));
  const Json apart = cluster("tensor_parallel_size: 4, prefill_replicas: 1, decode_replicas: 1");
  CHECK(apart.at("replicas").at(0).at("role") == "prefill");
  CHECK(apart.at("replicas").at(1).at("role") == "decode");
  CHECK(apart.at("itl_p99").get<double>() < shared.at("itl_p99").get<double>());
}

TEST_CASE("a trace shows every engine of a deployment") {
  const Folder folder;
  const std::string trace = folder.path("trace.json");
  const Json report =
      run_for_json({"simulate", kServing, "--set", "workload.requests_per_second=2", "--set", "workload.requests=20",
                    "--set", "deployment={data_parallel_size: 3}", "--chrome-trace", trace});
  std::set<int> engines;
  for (const Json& event : Json::parse(read(trace))) engines.insert(event.at("pid").get<int>());
  CHECK(engines == std::set<int>{1, 2, 3});
  CHECK(report.at("simulations").at(0).at("replicas").size() == 3);
}

TEST_CASE("what simulate cannot answer it refuses in words") {
  const Finished by_five = run_dculab({"simulate", kServing, "--set", "deployment.tensor_parallel_size=5"});
  CHECK(by_five.exit_code == 2);  // a line for each
  CHECK_THAT(by_five.err, ContainsSubstring("32 query heads do not divide over 5 devices\n") &&
                              ContainsSubstring("8 KV heads do not divide over 5 devices\n"));
  check_refused({"simulate", kServing, "--set", "deployment.decode_replicas=1"}, {"need each other"});
  check_refused(
      {"simulate", kServing, "--set", "slo={slowdown: 2}", "--set", "kv_cache={retention: window, window_tokens: 64}"},
      {"slo.slowdown", "retention all"});
  check_refused({"study", "llama3_on_dcu", "--set", "deployment.data_parallel_size=2"},
                {"deployment: a step is predicted on devices that share every layer", "`dculab simulate`"});
  check_refused({"simulate", "quickstart"}, {"has no requests to serve"});
  check_refused({"simulate", kServing, "--set", "sweep={measure.repeats: [1, 2]}"}, {"changes no predicted time"});
  check_refused({"simulate", kServing, "--set", "constraints=[ttft_p99 <= 1 ms]"}, {"constraints", "subject_to"});
  check_refused({"simulate", kServing, "--set", "slo={}"}, {"goodput", "give slo"});
  check_refused({"simulate", kServing, "--set", "pareto={minimize: [ttft_p50, step_time]}"},
                {"pareto: step_time is no metric of served requests"});
  check_refused({"simulate", kServing, "--set", "objective={minimize: kv_bytes}"},
                {"kv_bytes is no metric of served requests"});
  check_refused({"simulate", kServing, "--chrome-trace", "/dev/null"}, {"--chrome-trace", "no sweep"});
  check_refused({"simulate", kServing, "--measure"}, {"--measure", "z100 is a GPU"});
  check_refused({"simulate", kServing, "--set", "workload.kv_padding=longest"}, {"workload.kv_padding"});
  check_refused({"simulate", kServing, "--set", "workload.prompt_tokens=9000"},
                {"request 1: the prompt of 9000 tokens"});
}

TEST_CASE("block sizes are compared on each machine with the model's own KV heads, of which none is chosen") {
  const Folder folder;
  const std::string file =
      folder.write("both.yaml",
                   "schema: dculab/scenario/1\nquestion: Which?\nmodel: llama-3-8b\nmachines: [z100, k100-ai]\n"
                   "workload: {requests: 4, prompt_tokens: 100, output_tokens: 20}\n"
                   "sweep: {kv_cache.block_size: [16, 64], model.num_key_value_heads: [8, 2]}\n"
                   "objective: {maximize: output_tokens_per_second}\n");
  const Json blocks = run_for_json({"simulate", file}).at("block_sizes");
  REQUIRE(blocks.size() == 2);
  CHECK(blocks[0].at("machine") == "z100");
  CHECK(blocks[1].at("choice") == "16");
  const std::string text = run_dculab({"simulate", file}).out;
  CHECK_THAT(text, ContainsSubstring("→ z100, 8 KV heads: block size 16; 64 cannot be told apart from 16") &&
                       ContainsSubstring("→ no number of KV heads is recommended"));
}

}  // namespace
}  // namespace dculab::cli::test

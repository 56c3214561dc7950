// `dculab simulate`: requests served under a virtual clock.
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
  CHECK(report.at("best") == best_index);
}

TEST_CASE("a single simulation tells what it did over time, in JSON and for Perfetto") {
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

TEST_CASE("conversations are counted by the model's tokenizer") {
  const Json report = run_for_json({"simulate", "serving/conversations_on_cpu"});
  const Json& run = report.at("simulations").at(0);
  CHECK(run.at("requests") == 60);
  CHECK(run.at("output_tokens").get<int>() > 60 * 4);
  CHECK(run.at("prompt_tokens").get<int>() > 60 * 4);
}

TEST_CASE("the engine here serves what was simulated") {
  const Json report =
      run_for_json({"simulate", kServing, "--set", "model=dculab-tiny", "--set", "weights=checkpoint", "--set",
                    "machine=x86-server", "--set", "workload.requests=12", "--set", "workload.prompt_tokens=40",
                    "--set", "workload.output_tokens=10", "--set", "workload.requests_per_second=500", "--measure"});
  const Json& run = report.at("simulations").at(0);
  for (const char* metric : {"total_time", "ttft_p50", "tpot_p50", "latency_p99", "output_tokens_per_second"}) {
    CHECK(run.at("measured").at(metric).at("simulated").get<double>() > 0);
    CHECK(run.at("measured").at(metric).at("measured").get<double>() > 0);
  }
}

TEST_CASE("what simulate cannot answer it refuses in words") {
  check_refused({"simulate", "quickstart"}, {"has no requests to serve"});
  check_refused({"simulate", kServing, "--set", "objective={minimize: kv_bytes}"},
                {"kv_bytes is no metric of served requests"});
  check_refused({"simulate", kServing, "--chrome-trace", "/dev/null"}, {"--chrome-trace", "no sweep"});
  check_refused({"simulate", kServing, "--measure"}, {"--measure", "z100 is a GPU"});
  check_refused({"simulate", kServing, "--set", "workload.prompt_tokens=9000"},
                {"request 1: the prompt of 9000 tokens"});
}

}  // namespace
}  // namespace dculab::cli::test

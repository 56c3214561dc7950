#include "config/serving_runs_file.hpp"

#include <string>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

const std::string kRunsHeader =
    "experiment,software,machine,devices,model,weights,workload,prompt_tokens,output_tokens,stage,"
    "requests_per_second,seconds_per_stage,max_num_seqs,max_num_batched_tokens,gpu_memory_utilization,"
    "enable_prefix_caching,cpu_offload,metric,measured_ms,predicted_by_a,predicted_by_b\n";
const std::string kRun =
    "2,vLLM "
    "0.15.1,h100-sxm,2,m/M-34b,fp16,codegen,566,247,all,5+10,600,128,2048,0.9,true,True,e2e_mean,3993.18,,3330.5\n";

std::string refused(const std::string& text) {
  try {
    static_cast<void>(read_serving_runs("r.csv", text));
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string run_with(const std::string& from, const std::string& to) {
  std::string row = kRun;
  return kRunsHeader + row.replace(row.find(from), from.size(), to);
}

TEST_CASE("served runs are read, stages and rivals as they stand") {
  const std::vector<ServedFigure> figures = read_serving_runs("r.csv", kRunsHeader + kRun);
  REQUIRE(figures.size() == 1);
  const ServedFigure& figure = figures.front();
  CHECK(figure.line == 2);
  CHECK(figure.load.requests_per_second == std::vector<double>{5, 10});
  CHECK(figure.load.stage == Seconds(600));
  CHECK(figure.load.enable_prefix_caching);
  CHECK(figure.cpu_offload == Stated::yes);
  CHECK(name(figure.metric) == "e2e_mean");
  CHECK(figure.measured.value() == Approx(3.99318));
  REQUIRE(figure.predicted_by.size() == 1);
  CHECK(figure.predicted_by.at("b").value() == Approx(3.3305));
}

TEST_CASE("the shipped served runs are read whole") {
  CHECK(read_serving_runs_file(DCULAB_SOURCE_DIR "/tests/data/serving_runs.csv").size() == 147);
}

TEST_CASE("a wrong row of served runs is refused with its line") {
  CHECK_THAT(refused(""), ContainsSubstring("is empty"));
  CHECK_THAT(refused(run_with("5+10", "5+")), ContainsSubstring("r.csv:2: requests_per_second"));
  CHECK_THAT(refused(run_with("5+10", "")), ContainsSubstring("requests_per_second: missing"));
  CHECK_THAT(refused(run_with("5+10", "5+-1")), ContainsSubstring("out of range"));
  CHECK_THAT(refused(run_with("5+10", "1e9")), ContainsSubstring("at most 4194304 requests"));
  CHECK_THAT(refused(run_with("3993.18", "0")), ContainsSubstring("r.csv:2: measured_ms"));
  CHECK_THAT(refused(run_with("3330.5", "nan")), ContainsSubstring("predicted_by_b"));
  CHECK_THAT(refused(run_with("e2e_mean", "e2e_p95")), ContainsSubstring("metric: 'e2e_p95' is not known"));
  CHECK_THAT(refused(run_with("True", "maybe")), ContainsSubstring("cpu_offload"));
  CHECK_THAT(refused(kRunsHeader + kRun + kRun), ContainsSubstring("r.csv:3: metric: this stage's stands on line 2"));
  CHECK_THAT(refused("predict_a," + kRunsHeader + "1," + kRun), ContainsSubstring("predict_a: unknown key"));
  CHECK_THAT(refused("predicted_by_b," + kRunsHeader + "1," + kRun), ContainsSubstring("stands twice"));
}

}  // namespace
}  // namespace dculab::config

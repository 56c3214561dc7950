// The loop: bench writes a trace, calibrate fits a machine to it, validate and predict use that machine.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/cli/generous_cpu.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

// Tokens per second are those of the step.
void check_rates(const Json& bench) {
  for (const Json& point : bench.at("points")) {
    INFO(point.dump());
    const bool decode = point.at("phase") == "decode";
    const double rate = point.at(decode ? "decode_tokens_per_second" : "prefill_tokens_per_second");
    const double tokens = point.at("batch").get<double>() * (decode ? 1 : point.at("context_tokens").get<double>());
    CHECK(rate == Approx(tokens / point.at("step_seconds").get<double>()));
  }
}

double median_abs_error(const Json& points) {
  std::vector<double> errors;
  for (const Json& point : points)
    errors.push_back(std::abs(point.at("predicted").get<double>() / point.at("measured").get<double>() - 1));
  std::sort(errors.begin(), errors.end());
  return (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]) / 2;
}

// Steps between those of the grid below are interpolated; longer ones, and a cache that none of them had, are not.
void check_domain(const std::string& fitted) {
  const Arguments predict{"predict", "--model", "dculab-tiny", "--machine", fitted, "--batch", "2"};
  Arguments inside = predict, outside = predict;
  inside.insert(inside.end(), {"--context", "100"});
  outside.insert(outside.end(), {"--context", "900"});
  CHECK(run_for_json(inside).at("basis") == "interpolated");
  CHECK(run_for_json(outside).at("basis") == "extrapolated");
  inside.insert(inside.end(), {"--set", "kv_cache.dtype=kivi4"});
  CHECK(run_for_json(inside).at("basis") == "extrapolated");
}

// Hidden from the optimised build's run: `study --measure`, its main job, probes too.
TEST_CASE("what probe writes is a machine that predict prices", "[.][main]") {
  const Folder folder;
  const std::string machine = folder.path("host.yaml");
  const Json probe = run_for_json({"probe", "--quick", "--threads", "2", "--machine-file", machine});
  CHECK(probe.at("schema") == "dculab/probe/1");
  const Json step = run_for_json({"predict", "--model", "dculab-tiny", "--machine", machine, "--context", "100"});
  CHECK(step.at("basis") == "priors");  // of a machine that no trace has calibrated
}

TEST_CASE("a trace goes from bench to calibrate to validate to predict", "[main]") {
  const Folder folder;
  const std::string cpu = folder.write("cpu.yaml", kGenerousCpu);
  const std::string trace = folder.path("trace.jsonl"), fitted = folder.path("fitted.yaml");
  const Json bench = run_for_json({"bench", "--model", "dculab-tiny", "--batch", "1,3", "--context", "40,200",
                                   "--kv-heads", "2,8", "--repeats", "3", "--threads", "2", "--trace", trace});
  CHECK(bench.at("schema") == "dculab/bench/1");
  REQUIRE(bench.at("points").size() == 16);
  check_rates(bench);
  std::istringstream lines(read(trace));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) CHECK(Json::parse(line).is_object());
  CHECK(count == 17);  // a header and the steps

  const Json fit = run_for_json({"calibrate", trace, "--machine", cpu, "--machine-file", fitted, "--hold-out", "0.25"});
  CHECK(fit.at("schema") == "dculab/calibrate/1");
  CHECK(fit.at("refused").empty());
  CHECK(fit.at("fitted").at("count") == 12);
  CHECK(fit.at("held_out").at("count") == 4);
  CHECK(fit.at("held_out_ops").at("lm_head").at("count") == 4);
  CHECK_FALSE(fit.contains("regret"));  // one block size: nothing to decide
  CHECK(fit.at("interval_factor").get<double>() >= 1);

  const Json scores = run_for_json({"validate", trace, "--machine", fitted});
  CHECK(scores.at("summary").at("count") == 16);
  CHECK(scores.at("points").size() == 16);
  for (std::size_t index = 0; index < 16; ++index) {
    const Json& score = scores.at("points")[index];
    CHECK(score.at("id") == bench.at("points")[index].at("id"));
    CHECK(score.at("measured").get<double>() == Approx(bench.at("points")[index].at("step_seconds").get<double>()));
    CHECK(score.at("unit") == "s");
  }
  CHECK(scores.at("summary").at("median_abs_error").get<double>() == Approx(median_abs_error(scores.at("points"))));
  check_domain(fitted);
  const Json shown = run_for_json({"show", fitted});
  CHECK_THAT(shown.dump(),
             ContainsSubstring(R"({"key":"calibration.domain.sequences","kind":"","source":"","value":"1 .. 3"})"));
  CHECK(folder.entries() == std::vector<std::string>{"cpu.yaml", "fitted.yaml", "trace.jsonl"});
}

TEST_CASE("a trace faster than the machine is refused, and then there is too little to fit") {
  const Folder folder;
  std::string slow = kGenerousCpu;
  slow.replace(slow.find("1000 GB/s"), 9, "0.01 GB/s");
  const std::string machine = folder.write("slow.yaml", slow), trace = folder.path("trace.jsonl");
  REQUIRE(run_dculab({"bench", "--model", "dculab-tiny", "--context", "16", "--repeats", "1", "--trace", trace})
              .exit_code == 0);
  check_refused({"validate", trace, "--machine", machine},
                {trace, "all 2 steps are faster than ", " can be, so nothing is compared; row 1 (", "DRAM",
                 "give --machine the device that they were recorded on"});
  const Finished fit =
      run_dculab({"calibrate", trace, "--machine", machine, "--machine-file", folder.path("fitted.yaml")});
  CHECK(fit.exit_code == 2);
  CHECK(fit.out.empty());
  CHECK_THAT(fit.err, ContainsSubstring("refused: 2 rows, first row 1 ("));
  CHECK_THAT(fit.err, ContainsSubstring("only 0 steps"));
  CHECK(folder.entries() == std::vector<std::string>{"slow.yaml", "trace.jsonl"});
}

TEST_CASE("a study that measures calibrates on one half and scores the other", "[main]") {
  const Folder folder;
  const std::string cpu = folder.write("cpu.yaml", kGenerousCpu);
  const std::string scenario = folder.write("small.yaml", R"(schema: dculab/scenario/1
question: Which block size here?
model: dculab-tiny
machine: host
workload: {phase: decode, batch: 1, context_tokens: 40}
sweep: {kv_cache.block_size: [1, 16, 64], model.num_key_value_heads: [2, 8], workload.batch: [1, 4]}
measure: {repeats: 3, warm_up: 1, held_out: 0.5, threads: 2}
)");
  const std::string trace = folder.path("trace.jsonl"), fitted = folder.path("fitted.yaml");
  const Json study =
      run_for_json({"study", scenario, "--measure", "--host", cpu, "--trace", trace, "--machine-file", fitted});
  CHECK(study.at("refused").empty());
  REQUIRE(study.at("points").size() == 6);
  for (const Json& point : study.at("points")) {
    CHECK(point.at("measured_seconds").get<double>() > 0);
    CHECK(point.at("interval_seconds")[0].get<double>() <= point.at("predicted_seconds").get<double>());
  }
  CHECK(study.at("summary").at("count") == 6);
  CHECK(study.at("summary").at("median_spread").get<double>() >= 0);
  CHECK(study.at("regret").at("regret").get<double>() >= 0);
  CHECK(study.at("regret").at("worst_single_workload").get<double>() >= 0);
  CHECK(folder.entries() == std::vector<std::string>{"cpu.yaml", "fitted.yaml", "small.yaml", "trace.jsonl"});
  CHECK(run_for_json({"validate", trace, "--machine", fitted}).at("points").size() == 12);

  check_refused({"study", scenario, "--measure", "--host", cpu, "--set", "workload.batch=1", "kv_cache.block_size=16"},
                {"needed"});
}

// About ten seconds: kept out of the default run, see CMakeLists.txt.
TEST_CASE("probe measures a machine that predict can use", "[.slow]") {
  const Folder folder;
  const std::string host = folder.path("host.yaml");
  const Json probe = run_for_json({"probe", "--quick", "--threads", "1", "--machine-file", host});
  CHECK(probe.at("memory").back().at("name") == "DRAM");
  CHECK(probe.at("memory").back().at("bandwidth_bytes_per_second").get<double>() > 1e8);
  const Json prediction = run_for_json({"predict", "--model", "dculab-tiny", "--machine", host});
  CHECK(prediction.at("step_seconds").get<double>() > 0);
  CHECK(prediction.at("basis") == "priors");
}

TEST_CASE("the shipped measured studies run, each with a small model of its own") {
  const Folder folder;
  const std::string cpu = folder.write("cpu.yaml", kGenerousCpu);
  for (const std::string name : {"mla_moe", "cla2", "qknorm"}) {
    INFO(name);
    const Json study = run_for_json(
        {"study", "measured/" + name, "--measure", "--host", cpu, "--set", "measure.repeats=1", "measure.warm_up=0"});
    CHECK(study.at("points").size() >= 16);  // the half that the fit does not see
    CHECK(study.contains("regret"));
  }
}

}  // namespace
}  // namespace dculab::cli::test

// The loop: bench writes a trace, calibrate fits a machine to it, validate and predict use that machine.
#include <algorithm>
#include <sstream>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

// Faster than what two threads of any CPU reach, so that no honest step is refused.
constexpr const char* kGenerousCpu = R"(schema: dculab/machine/1
name: generous-cpu
kind: cpu
description: two threads of a CPU that no CPU beats
compute_units: {value: 2, kind: assumed, source: for this test}
clock: {value: 3 GHz, kind: assumed, source: for this test}
peaks:
  f32:
    vector: {value: 2 TFLOP/s, kind: assumed, source: for this test}
memory:
  - name: L2
    scope: compute_unit
    size: {value: 2 MiB, kind: assumed, source: for this test}
    line: {value: 64 B, kind: assumed, source: for this test}
    bandwidth: {value: 2000 GB/s, kind: assumed, source: for this test}
    latency: {value: 5 ns, kind: assumed, source: for this test}
  - name: DRAM
    scope: device
    size: {value: 64 GiB, kind: assumed, source: for this test}
    line: {value: 64 B, kind: assumed, source: for this test}
    bandwidth: {value: 1000 GB/s, kind: assumed, source: for this test}
    latency: {value: 100 ns, kind: assumed, source: for this test}
overheads:
  kernel_launch: {value: 5 us, kind: assumed, source: for this test}
)";

TEST_CASE("a trace goes from bench to calibrate to validate to predict") {
  const Folder folder;
  const std::string cpu = folder.write("cpu.yaml", kGenerousCpu);
  const std::string trace = folder.path("trace.jsonl"), fitted = folder.path("fitted.yaml");
  const Json bench = run_for_json({"bench", "--model", "dculab-tiny", "--batch", "1,3", "--context", "40,200",
                                   "--kv-heads", "2,8", "--repeats", "3", "--threads", "2", "--trace", trace});
  CHECK(bench.at("schema") == "dculab/bench/1");
  REQUIRE(bench.at("points").size() == 16);
  for (const Json& point : bench.at("points")) {
    INFO(point.dump());
    const bool decode = point.at("phase") == "decode";
    const double rate = point.at(decode ? "decode_tokens_per_second" : "prefill_tokens_per_second");
    const double tokens = point.at("batch").get<double>() * (decode ? 1 : point.at("context_tokens").get<double>());
    CHECK(rate == Approx(tokens / point.at("step_seconds").get<double>()));
  }
  std::istringstream lines(read(trace));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) CHECK(Json::parse(line).is_object());
  CHECK(count == 17);  // a header and the steps

  const Json fit = run_for_json({"calibrate", trace, "--machine", cpu, "--machine-file", fitted, "--hold-out", "0.25"});
  CHECK(fit.at("schema") == "dculab/calibrate/1");
  CHECK(fit.at("refused").empty());
  CHECK(fit.at("fitted").at("count") == 12);
  CHECK(fit.at("held out").at("count") == 4);
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
  const Json uncalibrated = run_for_json({"validate", trace, "--machine", cpu});
  CHECK(scores.at("summary").at("median_abs_error") < uncalibrated.at("summary").at("median_abs_error"));

  const Arguments predict{"predict", "--model", "dculab-tiny", "--machine", fitted, "--batch", "2"};
  Arguments inside = predict, outside = predict;
  inside.insert(inside.end(), {"--context", "100"});
  outside.insert(outside.end(), {"--context", "900"});
  CHECK(run_for_json(inside).at("basis") == "interpolated");
  CHECK(run_for_json(outside).at("basis") == "extrapolated");
  CHECK(folder.entries() == std::vector<std::string>{"cpu.yaml", "fitted.yaml", "trace.jsonl"});
}

TEST_CASE("a trace faster than the machine is refused, row by row, and then there is too little to fit") {
  const Folder folder;
  std::string slow = kGenerousCpu;
  slow.replace(slow.find("1000 GB/s"), 9, "0.01 GB/s");
  const std::string machine = folder.write("slow.yaml", slow), trace = folder.path("trace.jsonl");
  REQUIRE(run_dculab({"bench", "--model", "dculab-tiny", "--context", "16", "--repeats", "1", "--trace", trace})
              .exit_code == 0);
  const Json scores = run_for_json({"validate", trace, "--machine", machine});
  CHECK(scores.at("refused").size() >= 2);
  CHECK_THAT(scores.at("refused")[0].at("reason").get<std::string>(), ContainsSubstring("DRAM"));
  check_refused({"calibrate", trace, "--machine", machine, "--machine-file", folder.path("fitted.yaml")},
                {"only 0 steps"});
  CHECK(folder.entries() == std::vector<std::string>{"slow.yaml", "trace.jsonl"});
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

}  // namespace
}  // namespace dculab::cli::test

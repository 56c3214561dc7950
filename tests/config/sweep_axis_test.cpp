// The axes of a sweep: what they read as, which points they make, and what is refused.
#include "config/sweep_axis.hpp"
#include "config/yaml_text.hpp"

#include <set>

#include "config/scenario_file.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

Scenario read_with(const std::string& axes) {
  return read_scenario("s.yaml", parse_yaml("s.yaml",
                                            "schema: dculab/scenario/1\nquestion: q\nmodel: m\n"
                                            "machine: z100\nworkload: {phase: decode}\nsweep:\n" +
                                                axes));
}

std::vector<std::string> values_of(const std::string& axis) {
  const SweepAxis read = read_with("  " + axis + "\n").sweep.at(0);
  std::vector<std::string> values;
  for (std::uint64_t number = 0; number < read.size(); ++number) values.push_back(read.value(number));
  return values;
}

TEST_CASE("axes are listed, stepped, multiplied, or a number of points on a scale") {
  using Values = std::vector<std::string>;
  CHECK(values_of("workload.batch: [1, 8]") == Values{"1", "8"});
  CHECK(values_of("workload.batch: {from: 16, to: 60, step: 16}") == Values{"16", "32", "48"});
  CHECK(values_of("kv_cache.block_size: {from: 1, to: 8, factor: 2}") == Values{"1", "2", "4", "8"});
  CHECK(values_of("workload.batch: {from: 1, to: 100, points: 3, scale: log}") == Values{"1", "10", "100"});
  CHECK(values_of("workload.batch: {from: 1, to: 3, points: 6, scale: log}") == Values{"1", "2", "3"});
  CHECK(values_of("engine.gpu_memory_utilization: {from: 0.1, to: 0.3, step: 0.1}") == Values{"0.1", "0.2", "0.3"});
  CHECK(values_of("machine.memory.DRAM.bandwidth: {from: 0.5 TB/s, to: 1 TB/s, points: 2}") ==
        Values{"0.5 TB/s", "1 TB/s"});
}

TEST_CASE("an axis of maps takes the place of a whole section") {
  const Scenario scenario = read_with(
      "  deployment:\n    - {tensor_parallel_size: 4, kv_transfer: {bandwidth: 10 GB/s}}\n    - {data_parallel_size: "
      "2}\n"
      "    - {}\n");
  CHECK(scenario.sweep.at(0).values ==
        std::vector<std::string>{"{tensor_parallel_size: 4, kv_transfer: {bandwidth: 10 GB/s}}",
                                 "{data_parallel_size: 2}", "{}"});
  const std::vector<SweepPoint> points = sweep_points(scenario);
  REQUIRE(points.size() == 3);
  CHECK(points[0].scenario.deployment.tensor_parallel_size == 4);
  CHECK(points[0].scenario.deployment.kv_transfer_bandwidth == BytesPerSecond(10e9));
  CHECK(points[1].scenario.deployment.tensor_parallel_size == 1);
  CHECK(points[1].scenario.deployment.data_parallel_size == 2);
  CHECK(points[2].scenario.deployment.devices() == 1);
  const Scenario quoted = read_with("  workload: [{requests: 2, file: 'a, b: c\"s.csv', arrival: replay}]\n");
  CHECK(sweep_points(quoted).at(0).scenario.workload.file == "a, b: c\"s.csv");
  CHECK_THROWS_WITH(read_with("  deployment: [{tensor_paralel_size: 4}]\n"), ContainsSubstring("tensor_paralel_size"));
  CHECK_THROWS_WITH(read_with("  model: [{name: m}]\n"), ContainsSubstring("must be words or numbers"));
  CHECK_THROWS_WITH(read_with("  deployment: [[1, 2]]\n"), ContainsSubstring("or maps such as"));
}

TEST_CASE("drawn numbers lie in their range, reach its ends, and are the same for the same seed") {
  const auto drawn = [](const std::string& more) {
    return values_of("workload.batch: {from: 2, to: 5, samples: 400" + more + "}");
  };
  const std::vector<std::string> values = drawn("");
  CHECK(std::set(values.begin(), values.end()) == std::set<std::string>{"2", "3", "4", "5"});
  CHECK(drawn("") == values);
  CHECK(drawn(", seed: 2") != values);
  // On a logarithmic scale 2 is drawn as often as 4 and 5 together: log(3/2) of log(6/2) against log(6/4).
  const std::vector<std::string> logarithmic = drawn(", scale: log");
  const double share = static_cast<double>(std::count(logarithmic.begin(), logarithmic.end(), "2")) / 400;
  CHECK_THAT(share, WithinAbs(0.369, 0.1));
  const std::vector<std::string> words = values_of("weights: {values: [f16, int8], samples: 100}");
  CHECK(std::set(words.begin(), words.end()) == std::set<std::string>{"f16", "int8"});
}

TEST_CASE("drawn axes go together, and the others make every combination with them") {
  const Scenario scenario = read_with(
      "  workload.batch: {from: 1, to: 1000, samples: 50}\n  kv_cache.block_size: [1, 2, 4]\n"
      "  workload.context_tokens: {from: 1, to: 1000, samples: 50}\n");
  CHECK(num_points(scenario.sweep) == 150);
  const auto choices = [&scenario](std::uint64_t point) { return choices_at(scenario.sweep, point); };
  CHECK(choices(0)[1].second == "1");
  CHECK(choices(149)[1].second == "4");
  CHECK(choices(7)[0] == choices(57)[0]);
  CHECK(choices(7)[2] == choices(107)[2]);
  CHECK(choices(7)[0].second != choices(7)[2].second);  // axes have draws of their own
}

TEST_CASE("axes that make no sense are refused where they stand") {
  const auto refused = [](const std::string& axis, const std::string& why) {
    INFO(axis);
    CHECK_THROWS_WITH(read_with("  " + axis + "\n"), ContainsSubstring("s.yaml:7:") && ContainsSubstring(why));
  };
  refused("workload.batch: {from: 8, to: 1, step: 1}", "to: must not be below from");
  refused("workload.batch: {from: 1, to: 8}", "needs one of step, factor, points and samples");
  refused("workload.batch: {from: 1, to: 8, step: 1, points: 3}", "needs one of");
  refused("workload.batch: {from: 0, to: 8, factor: 2}", "needs a from above 0");
  refused("workload.batch: {from: 1, to: 8, factor: 1}", "factor: '1' is out of range");
  refused("workload.batch: {from: 1, to: 8, step: 1, stepp: 1}", "unknown key");
  refused("workload.batch: {from: one, to: 8, step: 1}", "must be a number");
  refused("workload.batch: {values: [1, 2]}", "make a plain list");
  refused("workload.batch: {from: 1, to: 1e9, samples: 3}", "");
  refused("workload.batch: {from: 1, to: 99999999, step: 1}", "more than 100 000 values");
  refused("machine.clock: {from: 1 GHz, to: 2 MHz, points: 2}", "needs the unit of from, 'GHz'");
  refused("workload.nonsense: [1]", "unknown key");
  CHECK_THROWS_WITH(read_with("  workload.batch: {from: 1, to: 8, samples: 3}\n"
                              "  workload.context_tokens: {from: 1, to: 8, samples: 4}\n"),
                    ContainsSubstring("drawn together"));
}

}  // namespace
}  // namespace dculab::config

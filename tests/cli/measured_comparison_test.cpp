// `dculab study --measure` of variants: each one's predicted speed-up beside the measured one. No time is judged.
#include <algorithm>
#include <sstream>

#include "tests/cli/generous_cpu.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

constexpr const char* kScenario = R"(schema: dculab/scenario/1
question: What do other blocks, fewer KV heads and smaller weights gain?
model: dculab-tiny
machine: host
kv_cache: {dtype: f16, block_size: 16}
workload: {phase: decode, batch: 1, context_tokens: 32}
sweep:
  workload.context_tokens: [16, 32, 48, 64]
measure: {repeats: 3, warm_up: 0, threads: 2}
compare:
  baseline: blocks of 16
  variants:
    - {name: blocks of 1, changes: {kv_cache.block_size: 1}}
    - {name: 2 KV heads, changes: {model.num_key_value_heads: 2}}
    - {name: int4 weights, changes: {weights: gptq-int4-g32, activations: int8}}
)";

Arguments study(const Folder& folder, const std::vector<std::string>& set = {}) {
  Arguments arguments{"study", folder.write("variants.yaml", kScenario), "--measure", "--host",
                      folder.write("cpu.yaml", kGenerousCpu)};
  for (const std::string& change : set) arguments.insert(arguments.end(), {"--set", change});
  return arguments;
}

TEST_CASE("variants are measured, and predicted by a fit that saw the baseline alone", "[main]") {
  const Folder folder;
  Arguments arguments = study(folder);
  const std::string trace = folder.path("trace.jsonl"), machine = folder.path("machine.yaml");
  arguments.insert(arguments.end(), {"--trace", trace, "--machine-file", machine});
  const Json report = run_for_json(arguments);
  const Json& rows = report.at("speed_ups");
  REQUIRE(rows.size() == 12);
  for (const Json& row : rows) {
    INFO(row.dump());
    CHECK(row.at("measured_seconds").get<double>() > 0);
    CHECK(row.at("measured_speed_up").get<double>() > 0);
    CHECK(row.at("predicted_speed_up").get<double>() > 0);
  }
  CHECK(rows[0].at("variant") == "blocks of 1");
  CHECK(rows[1].at("variant") == "2 KV heads");
  CHECK(rows[2].at("variant") == "int4 weights");  // random ones: the model's folder holds none
  CHECK(rows[1].at("predicted_speed_up").get<double>() >= 1);
  std::istringstream lines(read(trace));
  CHECK(std::count(std::istreambuf_iterator<char>(lines), {}, '\n') == 17);  // a header, 4 points of 4 steps
  const Json prediction = run_for_json({"predict", "--model", "dculab-tiny", "--machine", machine});
  CHECK(prediction.at("basis") != "priors");
}

TEST_CASE("what cannot be measured is refused") {
  const Folder folder;
  check_refused(study(folder, {"weights=gptq-int4"}), {"quantized", "cannot be merged"});
  check_refused(study(folder, {"sweep.workload.context_tokens=[16, 32]"}), {"only 2", "widen the sweep"});
  const std::string host = folder.path("cpu.yaml");
  check_refused({"study", "papers/opt_gptq", "--measure", "--host", host}, {"workload", "single steps"});
  check_refused({"study", "group_size", "--measure", "--host", host}, {"accuracy", "--measure"});
}

}  // namespace
}  // namespace dculab::cli::test

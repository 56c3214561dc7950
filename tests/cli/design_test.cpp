// Machines as designs: what `--set machine.KEY` takes along and says of it, and studies that choose for each design.
#include <algorithm>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

constexpr const char* kDesigns =
    "schema: dculab/scenario/1\nquestion: Which?\nmodel: llama-3-8b\nmachines: [z100, k100-ai]\n"
    "workload: {phase: decode, batch: 16, context_tokens: 2000}\n";

Json predict_with(const std::vector<std::string>& figures) {
  Arguments arguments{"predict", "--model", "llama-3-8b", "--machine", "z100", "--batch", "16", "--context", "2000"};
  for (const std::string& figure : figures) {
    arguments.emplace_back("--set");
    arguments.push_back("machine." + figure);
  }
  return run_for_json(arguments);
}

bool has(const Json& list, const std::string& word) { return std::find(list.begin(), list.end(), word) != list.end(); }

TEST_CASE("a prediction says which figures followed and which did not move", "[main]") {
  const Json base = predict_with({}), wide = predict_with({"compute_units=128"});
  CHECK_FALSE(base.contains("redesign"));
  const Json& redesign = wide.at("redesign");
  CHECK(redesign.at("set") == Json::array({"compute_units"}));
  CHECK(has(redesign.at("followed"), "peaks.f16.vector"));
  CHECK(has(redesign.at("followed"), "memory.L1.bandwidth"));
  CHECK(has(redesign.at("stayed"), "memory.DRAM.bandwidth"));
  CHECK(wide.at("step_seconds").get<double>() < base.at("step_seconds").get<double>());
  const Finished reported = run_dculab({"predict", "--model", "llama-3-8b", "--machine", "z100", "--batch", "16",
                                        "--context", "2000", "--set", "machine.compute_units=128"});
  CHECK_THAT(reported.out,
             ContainsSubstring("compute_units is set by the scenario. Moved along: 4 peaks; bandwidth of L1. "
                               "Where it was: size of DRAM, L1 and L2;"));
}

TEST_CASE("a clock is an input: by value, by factor, by name") {
  const double base = predict_with({}).at("step_seconds");
  CHECK(predict_with({"clock=default"}).at("step_seconds") == base);
  const double boost = predict_with({"clock=boost"}).at("step_seconds");
  CHECK(predict_with({"clock=1500 MHz"}).at("step_seconds") == boost);
  CHECK(boost < base);
  CHECK(predict_with({"clock=0.5 x"}).at("step_seconds").get<double>() > base);
  check_refused({"predict", "--model", "llama-3-8b", "--machine", "z100", "--set", "machine.clock=turbo"},
                {"'turbo' is no clock of z100; write default, boost, or a frequency such as 1550 MHz"});
  check_refused({"predict", "--model", "llama-3-8b", "--machine", "z100", "--set", "machine.clock=-1 GHz"},
                {"machine.clock", "a clock cannot be"});
}

TEST_CASE("a machine is shown as a scenario would have it", "[main]") {
  const auto value_of = [](const Json& shown, const std::string& key) {
    for (const Json& each : shown.at("values"))
      if (each.at("key") == key)
        return std::pair(each.at("value").get<std::string>(), each.at("source").get<std::string>());
    return std::pair(std::string(), std::string());
  };
  const Json shown =
      run_for_json({"show", "k100-ai", "--set", "machine.clock=0.5 x", "--set", "machine.compute_units=60"});
  CHECK(value_of(shown, "peaks.f16.matrix").first == "48 TFLOP/s");
  CHECK_THAT(value_of(shown, "peaks.f16.matrix").second, ContainsSubstring("follows clock, which the scenario sets") &&
                                                             ContainsSubstring("1024 FLOP per unit and clock"));
  CHECK(value_of(shown, "memory.DRAM.bandwidth").first == "896 GB/s");
  check_refused({"show", "z100", "--set", "machine.memory.L7.size=1 MiB"}, {"no figure of z100"});
}

TEST_CASE("for each design the block size is chosen that a study of it alone recommends for its KV heads", "[main]") {
  const Folder folder;
  const std::string file = folder.write(
      "designs.yaml", std::string(kDesigns) +
                          "sweep:\n  machine.compute_units: [1 x, 2 x]\n  machine.memory.DRAM.channels: [1 x, 3 x]\n"
                          "  model.num_key_value_heads: [1, 2, 4, 8]\n  kv_cache.block_size: [8, 16, 32]\n"
                          "choose: [model.num_key_value_heads, kv_cache.block_size]\n");
  const std::string alone = folder.write("alone.yaml", std::string(kDesigns) +
                                                           "sweep:\n  model.num_key_value_heads: [1, 2, 4, 8]\n"
                                                           "  kv_cache.block_size: [8, 16, 32]\n");
  const Json designs = run_for_json({"study", file}).at("designs");
  REQUIRE(designs.size() == 2);
  for (std::size_t machine = 0; machine < 2; ++machine) {
    REQUIRE(designs[machine].at("points").size() == 4);
    for (const Json& point : designs[machine].at("points")) {
      const std::string heads = std::to_string(point.at("num_key_value_heads").get<int>());
      Arguments arguments{"study", alone, "--set", "model.num_key_value_heads=" + heads};
      for (const auto& [key, value] : point.at("choices").items()) {
        arguments.emplace_back("--set");
        arguments.push_back(key + "=" + value.get<std::string>());
      }
      const Json study = run_for_json(arguments).at("machines")[machine];
      const Json& wanted = study.at("recommendation");
      for (const char* key : {"num_key_value_heads", "block_size"}) CHECK(point.at(key) == wanted.at(key));
      const double seconds = point.at("step_seconds");
      CHECK(seconds == Approx(wanted.at("step_seconds").get<double>()).epsilon(1e-12));  // that is a mean's exponential
      for (const Json& priced : study.at("points"))
        if (priced.at("step_seconds") == seconds) CHECK(point.at("interval_seconds") == priced.at("interval_seconds"));
    }
  }
  const Json& figures = designs[0].at("points")[3].at("figures");
  CHECK(figures.at("compute_units") == 128);
  CHECK(figures.at("memory.DRAM.channels") == 96);
}

TEST_CASE("what cannot be chosen for designs is refused") {
  const Folder folder;
  const auto file = [&folder](const std::string& rest) { return folder.write("s.yaml", kDesigns + rest); };
  const std::string sweep = "sweep: {machine.clock: [1 x, 2 x], kv_cache.block_size: [8, 16]}\n";
  const std::string choose = "choose: kv_cache.block_size\n";
  CHECK(run_for_json({"study", file(sweep + choose)}).at("designs").size() == 2);
  check_refused({"study", file(sweep + "choose: machine.clock\n")}, {"choose", "model.num_key_value_heads"});
  check_refused({"study", file("sweep: {machine.clock: [1 x, 2 x]}\n" + choose)},
                {"choose: kv_cache.block_size is not swept"});
  check_refused({"study", file("sweep: {kv_cache.block_size: [8, 16]}\n" + choose)}, {"sweep a figure such as"});
  check_refused({"study", file(sweep + choose + "objective: {minimize: step_time}\n")}, {"does not go with objective"});
  check_refused({"study", file(sweep + choose), "--measure"}, {"designs are predicted"});
  check_refused({"study", file(sweep + choose), "--journal", folder.path("journal")}, {"--journal", "is of a search"});
  check_refused({"study", file("sweep: {machine: [z100, mi50], kv_cache.block_size: [8, 16]}\n" + choose)},
                {"list machines under `machines`"});
  const std::string served = folder.write("served.yaml",
                                          "schema: dculab/scenario/1\nquestion: Which?\nmodel: llama-3-8b\n"
                                          "machine: z100\nworkload: {requests: 4, prompt_tokens: 8, "
                                          "output_tokens: 8}\n" +
                                              sweep + choose);
  check_refused({"simulate", served}, {"choose: belongs to `dculab study`"});
}

}  // namespace
}  // namespace dculab::cli::test

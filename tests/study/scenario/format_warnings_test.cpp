// What formats make of a price, as a user is told.
#include "study/scenario/format_warnings.hpp"

#include "config/scenario_document.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

std::vector<std::string> warnings_of(const std::string& machine, const std::string& more) {
  const config::Scenario scenario = config::read_scenario(
      "s.yaml", config::parse_value("s.yaml", "schema: dculab/scenario/1\nquestion: q\nmodel: llama-3-8b\nmachine: " +
                                                  machine + "\n" + more + "\n"));
  const sim::Machine on = resolve_machine(scenario, machine);
  return format_warnings(on, resolve_options(scenario, resolve_model(scenario), on));
}

TEST_CASE("BF16 is told of where it is converted, and not where it is multiplied as fast as F16") {
  const auto warns = [](const std::string& machine, const std::string& stack) {
    const std::vector<std::string> found = warnings_of(machine, "stack: " + stack);
    return !found.empty() && found.front().starts_with("weights in bf16: predicted with a conversion to f16");
  };
  CHECK(warns("k100-ai", "dculab"));  // its activations are F16
  CHECK_FALSE(warns("k100-ai", "vllm"));
  CHECK_FALSE(warns("h800", "vllm"));
  CHECK(warns("z100", "vllm"));  // no matrix units
}

TEST_CASE("what a stack's file says of a weight format is told, and W8A8 multiplies in INT8") {
  const std::vector<std::string> found = warnings_of("k100-ai", "stack: vllm\nweights: w8a8");
  REQUIRE_FALSE(found.empty());
  CHECK_THAT(found.back(), ContainsSubstring("W8A8 is predicted with rocBLAS's INT8 products"));
  CHECK_THAT(warnings_of("k100-ai", "stack: vllm\nweights: gptq-int8").back(), !ContainsSubstring("W8A8"));
  const config::Scenario scenario = config::read_scenario(
      "s.yaml", config::parse_value("s.yaml",
                                    "schema: dculab/scenario/1\nquestion: q\nmodel: llama-3-8b\nmachine: k100-ai\n"
                                    "stack: vllm\nweights: w8a8\n"));
  const sim::Machine on = resolve_machine(scenario, "k100-ai");
  CHECK(resolve_options(scenario, resolve_model(scenario), on).activations == ActivationMode::int8);
}

TEST_CASE("matrix units that our own kernels do not use are told of") {
  const auto warns = [](const std::string& machine, const std::string& stack) {
    const std::vector<std::string> found = warnings_of(machine, "stack: " + stack);
    return !found.empty() && found.back().starts_with("dculab's kernels do not use the matrix units of " + machine);
  };
  for (const char* machine : {"k100-ai", "bw1000"}) {  // gfx928, gfx936
    CAPTURE(machine);
    CHECK(warns(machine, "dculab"));
    CHECK_FALSE(warns(machine, "vllm"));
  }
  CHECK_FALSE(warns("z100", "dculab"));  // has none
  CHECK_FALSE(warns("mi100", "dculab"));
  CHECK_FALSE(warns("mi210", "dculab"));
  CHECK_FALSE(warns("h200", "dculab"));  // what its kernels do was counted and measured
}

TEST_CASE("activations that do not go with the weights are told of") {
  CHECK(warnings_of("z100", "weights: f16\nkv_cache: {dtype: f16}").empty());
  CHECK(warnings_of("z100", "weights: f16\nactivations: int8\nkv_cache: {dtype: f16}") ==
        std::vector<std::string>{"activations int8: not with weights of f16; products are predicted with exact ones"});
}

}  // namespace
}  // namespace dculab::study

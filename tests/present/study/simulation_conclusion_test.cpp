// What `simulate` says below its tables, and what a study says of machines that run different stacks.
#include <string>

#include "config/scenario_document.hpp"
#include "present/output/show.hpp"
#include "present/study/simulated_scenario.hpp"
#include "present/study/study_report.hpp"
#include "tests/present/document_errors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] config::Scenario requests_on(const std::string& more) {
  const std::string text =
      "schema: dculab/scenario/1\nquestion: How fast?\nmodel: llama-2-7b\n"
      "workload: {requests: 12, prompt_tokens: 200, output_tokens: 40}\n" +
      more;
  return config::read_scenario("s.yaml", config::parse_value("s.yaml", text));
}

[[nodiscard]] Report simulated(const std::string& more) {
  SimulationReport report;
  const study::SimulationQuestion question = study::simulation_question(requests_on(more));
  report.add(question, study::answer_simulation(question, {.threads = 1}, study::SimulatedIntervals::none));
  Report taken = report.take();
  CHECK(test::document_errors(taken) == std::vector<std::string>{});
  return taken;
}

TEST_CASE("a simulation concludes with what requests wait, whether the SLO is met and what bounds the steps") {
  const Report met = simulated("machine: z100\nslo: {ttft: 1000 s}\n");
  REQUIRE(met.json["conclusion"].size() == 2);
  const std::string waits = met.json["conclusion"][0], bound = met.json["conclusion"][1];
  CHECK_THAT(waits, ContainsSubstring("llama-2-7b on z100 serves ") &&
                        ContainsSubstring(" requests/s; half of them wait at most ") &&
                        ContainsSubstring(" for the first token (P99: ") &&
                        ContainsSubstring(" 100 % of them are within the SLO, which asks for 90.0 %: it is met."));
  CHECK_THAT(bound, ContainsSubstring("The largest part of the steps' time, ") && ContainsSubstring(", is bound by "));
  CHECK(text_of(met, Format::table, std::nullopt).ends_with("\nIn short\n" + waits + "\n" + bound + "\n"));
  CHECK_THAT(std::string(simulated("machine: z100\nslo: {ttft: 1 us}\n").json["conclusion"][0]),
             ContainsSubstring(" 0 % of them are within the SLO") && ContainsSubstring(": it is missed."));
  CHECK_THAT(std::string(simulated("machine: z100\n").json["conclusion"][0]), !ContainsSubstring("SLO"));
}

TEST_CASE("several simulations conclude with the one that is preferred, and how many meet the SLO") {
  const std::string sweep = "machine: z100\nsweep: {kv_cache.block_size: [16, 64]}\n";
  const Report most = simulated(sweep);
  REQUIRE(most.json["conclusion"].size() == 1);
  CHECK_THAT(std::string(most.json["conclusion"][0]),
             ContainsSubstring("z100, block ") && ContainsSubstring(" serves the most: output_tokens_per_second "));
  const Report best = simulated(sweep + "objective: {minimize: ttft_p99}\nslo: {ttft: 1000 s}\n");
  REQUIRE(best.json["conclusion"].size() == 2);
  CHECK_THAT(std::string(best.json["conclusion"][0]), ContainsSubstring(" is best by the objective: ttft_p99 "));
  CHECK(best.json["conclusion"][1] == "2 of the 2 points meet the SLO.");
  const Report none =
      simulated(sweep + "objective: {maximize: goodput, subject_to: {ttft_p99: \"<= 1 us\"}}\nslo: {ttft: 1000 s}\n");
  CHECK(none.json["conclusion"][0] == "No point of the sweep meets objective.subject_to.");
}

TEST_CASE("a study of machines that run different stacks names these") {
  const auto concluded = [](const std::string& more) {
    Report report = study_report(requests_on(more));
    conclude_stacks(requests_on(more), report);
    return report.json.value("conclusion", Json::array());
  };
  const Json found = concluded("machines: [k100-ai, h100-sxm]\nstack: vllm\n");
  REQUIRE(found.size() == 1);
  CHECK_THAT(std::string(found[0]),
             ContainsSubstring("The machines run different stacks (vllm-cuda on h100-sxm, vllm-dtk on k100-ai)"));
  CHECK(concluded("machines: [k100-ai, h100-sxm]\n").empty());
  CHECK(concluded("machines: [k100-ai, z100]\nstack: vllm-0.3.3-dtk\n").empty());
}

}  // namespace
}  // namespace dculab::present

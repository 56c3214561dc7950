// A profiler's kernels as a trace: what is filled in for what the profile does not know.
#include "study/calibrate/profile_import.hpp"

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

const std::string kProfiles = DCULAB_SOURCE_DIR "/tests/data/profiles/";

ImportQuestion import_question(const std::string& file, const std::string& phase = "decode") {
  ImportQuestion question;
  question.profile = kProfiles + file;
  question.scenario = config::read_scenario(
      "s.yaml", config::parse_value("s.yaml",
                                    "schema: dculab/scenario/1\nquestion: q\nmodel: dculab-tiny\nmachine: z100\n"
                                    "workload: {phase: " +
                                        phase + ", context_tokens: 200}\n"));
  return question;
}

TEST_CASE("a decode's context grows by a token a step, and its time is until the next step") {
  const ImportedProfile import = import_profile(import_question("rocprof_dculab.csv"));
  CHECK(import.work.growth == 1);
  CHECK(import.choices.time == config::StepTime::period);
  REQUIRE(import.trace.steps.size() == 1);
  CHECK(import.trace.steps[0].batch.sequences.front().context_tokens() == 205);  // the middle one's
  CHECK(import.trace.header.machine == "z100");
  CHECK(import.trace.header.build == "imported from rocprof_dculab.csv");
  CHECK_THAT(import.trace.header.timing, ContainsSubstring("GPU timestamps of rocprof, median of 11 steps, from a "
                                                           "step's first kernel to the next step's; ") &&
                                             ContainsSubstring(" % of the kernel time serves no op"));
}

TEST_CASE("growth and the end of a step are as asked") {
  ImportQuestion question = import_question("nsys_vllm.csv");
  question.growth = 0;
  question.time = config::StepTime::span;
  question.choices.steps_per_row = 1;
  const ImportedProfile import = import_profile(question);
  CHECK(import.trace.steps.size() == 4);
  for (const TraceStep& step : import.trace.steps) CHECK(step.batch.sequences.front().context_tokens() == 200);
  CHECK_THAT(import.trace.header.timing, ContainsSubstring("4 steps in 4 rows, from a step's first kernel to the end"));
}

TEST_CASE("new tokens that a step cannot have are refused before the profile is read") {
  ImportQuestion decode = import_question("missing.csv");
  decode.new_tokens = 2;
  CHECK_THROWS_WITH(import_profile(decode), ContainsSubstring("--new-tokens 2: a decode step has one new token"));
  ImportQuestion prefill = import_question("missing.csv", "prefill");
  prefill.new_tokens = 300;
  CHECK_THROWS_WITH(import_profile(prefill), ContainsSubstring("--new-tokens 300: more than --context 200"));
  CHECK_THROWS_WITH(import_profile(import_question("missing.csv")), ContainsSubstring("missing.csv"));
}

}  // namespace
}  // namespace dculab::study

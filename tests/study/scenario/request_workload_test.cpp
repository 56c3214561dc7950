// Requests that a workload takes from conversations: who counts them, and what is asked of it.
#include "study/scenario/request_workload.hpp"

#include <string>

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

config::Scenario recorded_scenario(const std::string& model) {
  return config::read_scenario(
      "s.yaml", config::parse_value("s.yaml", "schema: dculab/scenario/1\nquestion: q\nmodel: " + model +
                                                  "\nmachine: x86-server\nworkload: {requests: 2, file: talks.json, "
                                                  "arrival: poisson, requests_per_second: 1, seed: 5}\n"));
}

// What was asked, in the place of lengths.
std::vector<RecordedRequest> reported(const ConversationRequests& asked) {
  CHECK(asked.tokenizer == find_model("dculab-tiny") / "tokenizer.json");
  CHECK(asked.file == "talks.json");
  return {{{}, asked.max_position_embeddings / 2, asked.requests}, {{}, 3, static_cast<int>(asked.seed)}};
}

struct Counter {
  explicit Counter(ConversationCounter counter) { count_conversations_with(counter); }
  ~Counter() { count_conversations_with(nullptr); }
};

TEST_CASE("conversations have the lengths that a tokenizer counts") {
  const Counter counter(reported);
  const config::Scenario scenario = recorded_scenario("dculab-tiny");
  const ModelShape model = resolve_model(scenario);
  const RequestWorkload workload = resolve_requests(scenario, model);
  REQUIRE(workload.recorded.size() == 2);
  CHECK(workload.recorded[0].prompt_tokens == model.max_position_embeddings / 2);
  CHECK(workload.recorded[0].output_tokens == 2);
  CHECK(workload.recorded[1].output_tokens == 5);
}

TEST_CASE("conversations are refused where nothing counts them") {
  const config::Scenario tiny = recorded_scenario("dculab-tiny");
  CHECK_THROWS_WITH(resolve_requests(tiny, resolve_model(tiny)), ContainsSubstring("which this program does without"));
}

TEST_CASE("conversations of a model without a tokenizer are counted by their length, which is said") {
  const config::Scenario shape_alone = recorded_scenario("llama-3-8b"), tiny = recorded_scenario("dculab-tiny");
  const Counter counter([](const ConversationRequests& asked) {
    CHECK(asked.tokenizer.empty());
    return std::vector<RecordedRequest>{{{}, 1, 1}, {{}, 1, 1}};
  });
  CHECK(resolve_requests(shape_alone, resolve_model(shape_alone)).recorded.size() == 2);
  CHECK(counted_by_length(shape_alone));
  CHECK_FALSE(counted_by_length(tiny));
  CHECK_THAT(model_notes(shape_alone).back(), ContainsSubstring("a token for every 4 bytes"));
}

TEST_CASE("without a number of requests all of the file's are served") {
  const config::Scenario scenario = config::read_scenario(
      "s.yaml", config::parse_value("s.yaml",
                                    "schema: dculab/scenario/1\nquestion: q\nmodel: llama-3-8b\nmachine: z100\n"
                                    "workload: {file: " DCULAB_SOURCE_DIR
                                    "/tests/data/foreign/traces/CUT_mooncake_conversation_trace_300.jsonl, "
                                    "arrival: replay}\n"));
  CHECK(resolve_requests(scenario, resolve_model(scenario)).requests == 300);
  CHECK_THROWS_WITH(
      config::read_scenario("s.yaml", config::parse_value("s.yaml",
                                                          "schema: dculab/scenario/1\nquestion: q\nmodel: "
                                                          "llama-3-8b\nmachine: z100\nworkload: "
                                                          "{prompt_tokens: 5, output_tokens: 5}\n")),
      ContainsSubstring("workload.requests: missing"));
}

}  // namespace
}  // namespace dculab::study

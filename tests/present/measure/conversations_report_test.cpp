// Served conversations as a table and as JSON.
#include "present/measure/conversations_report.hpp"

#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

study::ServedConversations row_of(const std::string& dtype) {
  study::ServedConversations row{.kv_cache_dtype = dtype, .block_size = 8};
  row.report.requests.resize(2);
  for (RequestStats& request : row.report.requests) request.latency = Seconds(3);
  row.report.duration = Seconds(4);
  row.report.num_prompt_tokens = 30;
  row.report.num_generated_tokens = 10;
  row.figures = study::conversation_figures(row.report);
  return row;
}

study::ConversationQuestion question_of(int replicas) {
  study::ConversationQuestion question{.file = "talks.json",
                                       .model = "tiny",
                                       .random_weights = "",
                                       .speculative_model = "",
                                       .variants = {{"f16", {}}, {"int8", {}}}};
  question.replicas.data_parallel_size = replicas;
  return question;
}

study::ConversationAnswer answer() {
  return {.device = "a CPU", .build = "a build", .rows = {row_of("f16"), row_of("int8")}};
}

TEST_CASE("each way to keep K and V has a row, with the figures in JSON") {
  const Report report = conversations_report(question_of(1), answer());
  CHECK(report.heading == std::vector<std::string>{"a CPU, a build"});
  CHECK(report.json["workload"] == "talks.json");
  CHECK(report.json["activations"] == "exact");
  const Table& table = report.tables.at(0);
  REQUIRE(table.rows.size() == 2);
  for (const auto& row : table.rows) CHECK(row.size() == table.columns.size());
  CHECK(table.rows[1].front().text == "int8");
  const Json& first = report.json["rows"][0];
  CHECK(first["latency_seconds_sum"] == 6);
  CHECK(first["all_tokens_per_second"] == 10);
  CHECK(first["generated_tokens_per_second"] == 2.5);
  CHECK_FALSE(first.contains("speculation"));
}

TEST_CASE("replicas are counted in the heading, and drafts have columns where the question drafts") {
  study::ConversationQuestion question = question_of(2);
  for (study::ConversationVariant& variant : question.variants)
    variant.options.engine.speculative_config.method = SpeculativeMethod::ngram;
  const Report report = conversations_report(question, answer());
  CHECK(report.heading == std::vector<std::string>{"2 replicas on a CPU each, a build"});
  CHECK(report.json["data_parallel_size"] == 2);
  const Table& table = report.tables.at(0);
  CHECK(table.columns.back() == "drafting");
  for (const auto& row : table.rows) CHECK(row.size() == table.columns.size());
  CHECK(report.json["rows"][1].contains("speculation"));
}

}  // namespace
}  // namespace dculab::present

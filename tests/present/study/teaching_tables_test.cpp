// The teaching tables as people and programs see them.
#include "present/study/teaching_tables.hpp"

#include "tests/present/document_errors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

TEST_CASE("an intensity table names its layer, numbers its rows and ends with the total") {
  const study::IntensityQuestion question{
      .model = {.name = "llama-2-7b", .lecture = true}, .phase = Phase::decode, .tokens = 2048};
  const Report report = intensity_report(question, study::layer_intensity(question));
  CHECK(test::document_errors(report) == std::vector<std::string>{});
  CHECK(report.schema == "dculab/tables-intensity/1");
  CHECK_THAT(report.heading.at(0), ContainsSubstring("one layer, decode, L = 2048 tokens cached, batch 1, f16") &&
                                       ContainsSubstring("D = 4096, H = 128, 32 query heads, 32 KV heads"));
  const Table& table = report.tables.at(0);
  CHECK(table.rows.size() == report.json["rows"].size() + 1);
  CHECK(table.rows.front().front() == "1");
  CHECK(table.rows.back().front().empty());
  CHECK(report.json["total"]["flops"].get<double>() > 0);
  CHECK(report.json["phase"] == "decode");
}

TEST_CASE("both phases are two tables and one list of rows, beside the ridge of each machine") {
  const study::IntensityQuestion question{
      .model = {.name = "llama-2-7b", .lecture = true}, .both_phases = true, .machines = {"z100", "k100-ai"}};
  const Report report = intensity_report(question, study::layer_intensity(question));
  CHECK(test::document_errors(report) == std::vector<std::string>{});
  REQUIRE(report.tables.size() == 2);
  const Json& rows = report.json["rows"];
  CHECK(report.tables[0].rows.size() + report.tables[1].rows.size() == rows.size() + 2);
  CHECK(rows.front()["phase"] == "prefill");
  CHECK(rows.back()["phase"] == "decode");
  CHECK(report.json["phase"] == "both");
  CHECK(report.json["total"]["intensity"].get<double>() > 600 * report.json["decode_total"]["intensity"].get<double>());
  CHECK(report.json["ridges"][0]["intensity"].get<double>() == Approx(21.6e12 / 1.024e12));
  CHECK_THAT(report.tables.back().notes.back(), ContainsSubstring("Ridge of k100-ai: 214 FLOP/byte"));
}

TEST_CASE("a footprint marks the model's own row, and says where MLA has none") {
  study::FootprintQuestion question{
      .model = {.name = "llama-3-8b"}, .weights = WeightFormat{Dtype::f16}, .request = {.tokens = 1000, .batch = 2}};
  const Report report = footprint_report(question, study::model_footprint(question));
  CHECK(test::document_errors(report) == std::vector<std::string>{});
  int own = 0;
  for (const auto& row : report.tables.at(0).rows)
    if (row[1].ends_with(" *")) {
      ++own;
      CHECK(row[0] == "8");
      CHECK(row[1] == "GQA *");
    }
  CHECK(own == 1);
  CHECK(report.tables.at(0).rows.front()[1] == "MHA");
  CHECK(report.tables.at(0).notes.size() == 1);
  question.request.kv_cache_dtype = Dtype::kivi4;
  const Report grouped = footprint_report(question, study::model_footprint(question));
  CHECK_THAT(grouped.tables.at(0).notes.back(), ContainsSubstring("No row of MLA: kivi4"));
}

TEST_CASE("a footprint says how far each row gets on each machine") {
  const study::FootprintQuestion question{.model = {.name = "llama-3-8b"},
                                          .weights = {},
                                          .request = {.tokens = 1000, .batch = 2},
                                          .machines = {"z100", "k100-ai"}};
  const study::FootprintAnswer answer = study::model_footprint(question);
  const Report report = footprint_report(question, answer);
  CHECK(test::document_errors(report) == std::vector<std::string>{});
  const Table& table = report.tables.at(0);
  REQUIRE(table.columns.size() == 10);
  CHECK(table.columns.at(8) == "fits on z100");
  CHECK(table.rows.at(0).at(9) ==
        std::to_string(report.json["rows"][0]["longest_context"]["k100-ai"].get<std::int64_t>()) + " tokens");
  CHECK(report.json["rooms"][0]["machine"] == "z100");
  CHECK(report.json["rooms"][0]["kv_bytes"] == answer.rooms.front().kv_bytes.value());
  CHECK_THAT(table.notes.back(), ContainsSubstring("k100-ai: of 64.0 GiB, "));
}

TEST_CASE("a footprint has the checkpoint's weights unless others are asked for") {
  study::FootprintQuestion question{
      .model = {.name = "deepseek-v3"}, .weights = {}, .request = {.tokens = 1000, .batch = 1}};
  const study::FootprintAnswer stored = study::model_footprint(question);
  CHECK(stored.weights.dtype == Dtype::fp8_e4m3);
  CHECK_THAT(footprint_report(question, stored).heading.front(), ContainsSubstring("weights fp8_e4m3"));
  question.weights = WeightFormat{Dtype::bf16};
  const double ratio = study::model_footprint(question).own.weight_bytes / stored.own.weight_bytes;
  CHECK(ratio > 1.9);  // embedding and head are in BF16 in both
  CHECK(ratio < 2);
}

TEST_CASE("the cheaper form of latent attention is named in each row") {
  study::LatentFormsAnswer answer;
  answer.model.name = "a model";
  answer.machine.name = "a machine";
  answer.rows = {{.new_tokens = 1, .expanded = Seconds(2), .absorbed = Seconds(1)},
                 {.new_tokens = 64, .expanded = Seconds(1), .absorbed = Seconds(2)}};
  answer.unserved = {"expanded: predicted as if it were served"};
  const Report report = latent_forms_report({.scenario = {}, .batch = 4, .context = 64}, answer);
  CHECK(test::document_errors(report) == std::vector<std::string>{});
  CHECK(report.heading.at(0) == "a model on a machine: latent attention in one layer, 4 sequences of 64 tokens");
  CHECK(report.heading.back() == "warning: expanded: predicted as if it were served");
  CHECK(report.json["rows"][0]["cheaper"] == "absorbed");
  CHECK(report.json["rows"][1]["cheaper"] == "expanded");
  CHECK(report.tables.at(0).rows[1].back() == "expanded");
}

}  // namespace
}  // namespace dculab::present

// Models that were regrouped, quantized and judged, as people and programs see them.
#include "core/kv/table.hpp"
#include "present/measure/evaluation_report.hpp"
#include "present/measure/quantize_report.hpp"
#include "present/measure/regroup_report.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

const std::string kModel = DCULAB_SOURCE_DIR "/tests/golden/llama/text";

void ignore_progress(const std::string&, double) {}

TEST_CASE("a regrouped model says what its groups are by, and what each layer's are") {
  const files::test::TemporaryFolder folder;
  study::RegroupQuestion question;
  question.model = kModel;
  question.folder = folder.path("model");
  const study::RegroupedFolder made = study::regroup_folder(question, ignore_progress);
  const Report report = regroup_report(question, made);
  const int before = made.before.heads().num_key_value_heads;
  CHECK(report.heading == std::vector<std::string>{std::to_string(before) + " KV heads to 1: groups by neighbouring "
                                                                            "heads, mean of each group",
                                                   "written to " + question.folder});
  CHECK(report.tables.at(0).rows.size() == made.result.layers.size());
  CHECK(report.json["method"] == "mean");
  CHECK(report.json["compare"] == "kv");
  CHECK(report.json["error"] == "weights");
  CHECK(report.json["layers"][0]["similarity_inside"].is_null());
  question.options.method = engine::GroupingMethod::similarity;
  question.options.compared = engine::ComparedHeads::query;
  CHECK_THAT(regroup_report(question, made).heading.front(),
             ContainsSubstring("groups by cosine similarity of queries"));
  question.options.method = engine::GroupingMethod::qcqa;
  CHECK_THAT(regroup_report(question, made).heading.front(),
             ContainsSubstring("or fewer on average: groups by the error of weights (seed 1)"));
}

TEST_CASE("a quantized model says what each matrix lost, and what the folder holds") {
  const files::test::TemporaryFolder folder;
  study::QuantizeQuestion question;
  question.model = kModel;
  question.weights = study::WeightChoices{.method = engine::QuantizationMethod::rtn, .group_size = 16};
  question.output = folder.path("model");
  const study::QuantizedAnswer answer = study::quantize_folder(question, ignore_progress);
  const Report report = quantize_report(question, answer);
  CHECK(report.json["method"] == "rtn");
  CHECK(report.json["bits"] == 4);
  CHECK(report.json["error_of"] == "weights");
  CHECK(report.json["matrices"].size() == answer.model->modules.size());
  CHECK(report.json["total"]["file_bytes"].get<double>() > 0);
  CHECK(report.tables.at(0).columns[3] == "weight error");
  CHECK_THAT(report.tables.at(0).notes.at(1), ContainsSubstring("no calibration text"));
}

TEST_CASE("weights that stay as they are have no matrices, and a KV cache its scales") {
  study::QuantizedAnswer answer;
  answer.kv_scales.push_back({{4, 2}, {1, 0.5F}});
  answer.calibration_tokens = 10;
  study::QuantizeQuestion question;
  question.output = "there";
  const Report report = quantize_report(question, answer);
  CHECK(report.json["method"] == "none");
  CHECK_FALSE(report.json.contains("matrices"));
  CHECK(report.json["kv_scales"][0]["k_scale"] == 1);
  CHECK(report.tables.at(0).rows.at(0)[1].text == "4.000");
}

study::EvaluationAnswer judged() {
  study::EvaluationAnswer answer;
  answer.tasks.question_files = {"folder/choice.jsonl"};
  answer.tasks.decode = {.batch = 4, .context = 100, .steps = 2};
  study::EvaluationRow row;
  row.model = "tiny";
  row.choices = {{.num_items = 4, .right = 3, .right_per_character = 2}};
  row.decode_step = Seconds(0.5);
  row.weight_bytes = Bytes(1e6);
  answer.rows = {row};
  return answer;
}

TEST_CASE("columns that say nothing are left out of a judgement") {
  const Report report = evaluation_report(judged());
  CHECK(report.tables.at(0).columns ==
        std::vector<std::string>{"model", "KV cache", "choice", "weights", "KV/token", "tokens/s"});
  CHECK(report.tables.at(0).rows.at(0)[2].text == "75.0 %");
  CHECK(report.tables.at(0).rows.at(0).back().raw == "8");
  CHECK(report.json["rows"][0]["choices"][0]["accuracy_per_character"] == 0.5);
  CHECK(report.json["rows"][0]["text"].is_null());
  CHECK(report.json["text_file"].is_null());
  study::EvaluationAnswer dropping = judged();
  dropping.rows[0].retention = {.policy = RetentionPolicy::window, .window_tokens = 32};
  const Report kept = evaluation_report(dropping);
  CHECK(kept.tables.at(0).columns[2] == "KV kept");
  CHECK(kept.tables.at(0).rows.at(0)[2].text == "window 32");
}

}  // namespace
}  // namespace dculab::present

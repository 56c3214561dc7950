#include "present/schema/answer_schemas.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <variant>

#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "present/engine/completions_fields.hpp"
#include "present/engine/evaluation_fields.hpp"
#include "present/engine/quantize_fields.hpp"
#include "present/engine/regroup_fields.hpp"
#include "present/schema/json_schema.hpp"
#include "present/study/calibration_fields.hpp"
#include "present/study/prediction_fields.hpp"
#include "present/study/recommend_fields.hpp"
#include "present/study/served_fields.hpp"
#include "present/study/simulated_scenario.hpp"
#include "present/study/validation_fields.hpp"

namespace dculab::present {
namespace {

using ValidateAnswer = std::variant<ToldValidation, ToldLeaveOneOut, ToldServed>;
using CalibrateAnswer = std::variant<ToldTraceCalibration, PointsCalibration>;

constexpr std::array<AnswerSchema, 10> kAnswerSchemas{{
    {"predict", "dculab/predict/1", "one step on one machine, op by op",
     [] { return document_schema<study::Prediction>("dculab/predict/1"); }},
    {"simulate", "dculab/simulate/1", "requests served under a virtual clock",
     [] { return document_schema<Warned<ToldSimulations>>("dculab/simulate/1"); }},
    {"recommend", "dculab/recommend/1", "sizes and limits that an engine should have",
     [] { return document_schema<Warned<ToldRecommendations>>("dculab/recommend/1"); }},
    {"run", "dculab/run/1", "text that the engine generated",
     [] { return document_schema<ToldGeneration>("dculab/run/1"); }},
    {"evaluate", "dculab/evaluate/1", "how good models are, and how fast",
     [] { return document_schema<ToldEvaluations>("dculab/evaluate/1"); }},
    {"quantize", "dculab/quantize/1", "a model with quantized weights",
     [] { return document_schema<QuantizedAnswer>("dculab/quantize/1"); }},
    {"calibrate", "dculab/calibrate/1", "a machine fitted to traces, or machines and stacks to points",
     [] { return document_schema<CalibrateAnswer>("dculab/calibrate/1"); }},
    {"validate", "dculab/validate/1", "predicted against measured",
     [] { return document_schema<ValidateAnswer>("dculab/validate/1"); }},
    {"regroup", "dculab/regroup/1", "a model with fewer KV heads",
     [] { return document_schema<ToldRegrouping>("dculab/regroup/1"); }},
    {"schema", "dculab/schema/1", "the documents that have schemas",
     [] { return document_schema<ToldSchemas>("dculab/schema/1"); }},
}};

}  // namespace

std::span<const AnswerSchema> answer_schemas() { return kAnswerSchemas; }

Report schemas_report() {
  Report report{"dculab/schema/1", {}, {Table{}}, json_of(ToldSchemas{kAnswerSchemas})};
  report.tables.front().columns = {"command", "schema", "answers"};
  for (const AnswerSchema& each : kAnswerSchemas)
    report.tables.front().rows.push_back({std::string(each.name), std::string(each.id), std::string(each.answers)});
  return report;
}

const AnswerSchema& find_answer_schema(std::string_view name) {
  const auto found = std::ranges::find_if(
      kAnswerSchemas, [name](const AnswerSchema& each) { return each.name == name || each.id == name; });
  if (found != kAnswerSchemas.end()) return *found;
  std::string known;
  for (const AnswerSchema& each : kAnswerSchemas) known.append(known.empty() ? "" : ", ").append(each.name);
  throw InputError("schema", "there is none of " + in_quotes(name) + "; one of " + known);
}

}  // namespace dculab::present

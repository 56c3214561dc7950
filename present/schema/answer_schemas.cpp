#include "present/schema/answer_schemas.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <variant>

#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "present/measure/completions_fields.hpp"
#include "present/measure/evaluation_fields.hpp"
#include "present/measure/probe_fields.hpp"
#include "present/measure/quantize_fields.hpp"
#include "present/measure/regroup_fields.hpp"
#include "present/measure/replay_fields.hpp"
#include "present/measure/served_workload_fields.hpp"
#include "present/measure/step_trace_fields.hpp"
#include "present/output/field_csv.hpp"
#include "present/schema/file_schemas.hpp"
#include "present/schema/json_schema.hpp"
#include "present/schema/study_document.hpp"
#include "present/study/benchmark_fields.hpp"
#include "present/study/calibration_fields.hpp"
#include "present/study/diagnosis_fields.hpp"
#include "present/study/import_fields.hpp"
#include "present/study/prediction_fields.hpp"
#include "present/study/recommend_fields.hpp"
#include "present/study/served_fields.hpp"
#include "present/study/simulated_scenario.hpp"
#include "present/study/teaching_fields.hpp"
#include "present/study/validation_fields.hpp"
#include "present/values/shipped_report.hpp"
#include "present/values/shown_report.hpp"

namespace dculab::present {
namespace {

using ValidateAnswer =
    std::variant<Warned<Concluded<ReportedValidation>>, ReportedLeaveOneOut, ReportedServed, ReportedBenchmarks>;
using CalibrateAnswer = std::variant<Warned<ReportedTraceCalibration>, PointsCalibration, ReportedBenchmarkFit>;

constexpr std::array<AnswerSchema, 29> kAnswerSchemas{{
    {"study", "dculab/study/1", "the question of a scenario file",
     [] { return document_schema<StudyDocument>("dculab/study/1"); }},
    {"predict", "dculab/predict/1", "one step on one machine, op by op",
     [] { return document_schema<study::Prediction>("dculab/predict/1"); }},
    {"simulate", "dculab/simulate/1", "requests served under a virtual clock",
     [] { return document_schema<Warned<ReportedSimulations>>("dculab/simulate/1"); }},
    {"recommend", "dculab/recommend/1", "sizes and limits that an engine should have",
     [] { return document_schema<Warned<ReportedRecommendations>>("dculab/recommend/1"); }},
    {"diagnose", "dculab/diagnose/1", "why a measured step is slower than predicted",
     [] { return document_schema<study::Diagnosis>("dculab/diagnose/1"); }},
    {"tables-intensity", "dculab/tables-intensity/1", "arithmetic intensity of the ops of a layer",
     [] { return document_schema<Warned<ReportedIntensity>>("dculab/tables-intensity/1"); }},
    {"tables-footprint", "dculab/tables-footprint/1", "memory of weights and KV cache",
     [] { return document_schema<Warned<ReportedFootprint>>("dculab/tables-footprint/1"); }},
    {"tables-latents", "dculab/tables-latents/1", "which form of latent attention is cheaper",
     [] { return document_schema<Warned<ReportedLatentForms>>("dculab/tables-latents/1"); }},
    {"run", "dculab/run/1", "text that the engine generated",
     [] { return document_schema<ReportedGeneration>("dculab/run/1"); }},
    {"bench", "dculab/bench/1", "steps that the engine ran",
     [] { return document_schema<ReportedTrace>("dculab/bench/1"); }},
    {"bench-workload", "dculab/bench-workload/1", "conversations that the engine served",
     [] { return document_schema<ReportedConversationAnswer>("dculab/bench-workload/1"); }},
    {"bench-scenario", "dculab/bench-scenario/1", "a scenario's requests that the engine served",
     [] { return document_schema<ReportedServedScenario>("dculab/bench-scenario/1"); }},
    {"evaluate", "dculab/evaluate/1", "how good models are, and how fast",
     [] { return document_schema<ReportedEvaluations>("dculab/evaluate/1"); }},
    {"probe", "dculab/probe/1", "this host, as it was measured",
     [] { return document_schema<ReportedHost>("dculab/probe/1"); }},
    {"probe-gpu", "dculab/probe-gpu/1", "a GPU, as it was measured",
     [] { return document_schema<ReportedGpu>("dculab/probe-gpu/1"); }},
    {"import", "dculab/import/1", "a profiler's kernels as steps of a trace",
     [] { return document_schema<ReportedImport>("dculab/import/1"); }},
    {"import-kernels", "dculab/import-kernels/1", "which names of kernels are known",
     [] { return document_schema<ReportedKernelRules>("dculab/import-kernels/1"); }},
    {"quantize", "dculab/quantize/1", "a model with quantized weights",
     [] { return document_schema<ReportedQuantized>("dculab/quantize/1"); }},
    {"replay", "dculab/replay/1", "what GPU kernels touch, beside the closed form",
     [] { return document_schema<ReportedReplay>("dculab/replay/1"); }},
    {"calibrate", "dculab/calibrate/1", "a machine fitted to traces, or machines and stacks to points",
     [] { return document_schema<CalibrateAnswer>("dculab/calibrate/1"); }},
    {"validate", "dculab/validate/1", "predicted against measured",
     [] { return document_schema<ValidateAnswer>("dculab/validate/1"); }},
    {"regroup", "dculab/regroup/1", "a model with fewer KV heads",
     [] { return document_schema<ReportedRegrouping>("dculab/regroup/1"); }},
    {"show", "dculab/show/1", "every effective value of a file or a name",
     [] { return document_schema<ReportedValues>("dculab/show/1"); }},
    {"list", "dculab/list/1", "models, machines, stacks and scenarios that are shipped",
     [] { return document_schema<Warned<study::Shipped>>("dculab/list/1"); }},
    {"schema", "dculab/schema/1", "the documents that have schemas",
     [] { return document_schema<ReportedSchemas>("dculab/schema/1"); }},
    {"machine", "dculab/machine/1", "a file: a device, and what it costs to run work there", machine_schema},
    {"stack", "dculab/stack/1", "a file: a serving program on a kind of device", stack_schema},
    {"scenario", "dculab/scenario/1", "a file: one question", scenario_schema},
    {"trace", "dculab/trace/2", "a line of a file of measured steps", trace_schema},
}};

}  // namespace

std::span<const AnswerSchema> answer_schemas() { return kAnswerSchemas; }

Report schemas_report() {
  Report report = report_of("dculab/schema/1", ReportedSchemas{kAnswerSchemas});
  report.tables.emplace_back().columns = {"command", "schema", "answers"};
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

#include "cli/study/speculation_study.hpp"

#include <utility>

#include "core/error.hpp"
#include "present/study/speculation_report.hpp"
#include "study/decide/draft_study.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"
#include "study/validate/reported_drafts.hpp"

namespace dculab::cli {
namespace {

[[nodiscard]] std::string drafter_text(const study::DraftQuestion& question) {
  switch (question.options.speculative_config.method) {
    case SpeculativeMethod::draft_model:
      return question.speculation.draft->name;
    case SpeculativeMethod::mtp:
      return "its own layer for further tokens";
    case SpeculativeMethod::medusa:
      return "Medusa heads";
    default:
      return "look-up in the text before";
  }
}

[[nodiscard]] std::string title_of(const study::DraftQuestion& question) {
  const int devices = question.part.tensor_parallel_size;
  return question.model.name + " on " + (devices > 1 ? std::to_string(devices) + " x " : "") + question.machine.name +
         ", drafted by " + drafter_text(question) + ", context " + std::to_string(question.context);
}

void study_sweep(const config::Scenario& scenario, const std::string& name, present::Report& report) {
  const study::DraftStudy study = study::study_drafts(scenario, name);
  const study::DraftQuestion& asked = study.points.front().question;
  present::Json json{
      {"machine", asked.machine.name}, {"points", present::Json::array()}, {"advice", present::Json::array()}};
  std::vector<present::StudiedDraft> studied;
  for (std::size_t index = 0; index < study.points.size(); ++index) {
    const study::DraftQuestion& question = study.points[index].question;
    present::add_warnings(report, study::refused_kv(question.machine, question.part, question.options));
    studied.push_back({study.points[index].choices, study.outcomes[index]});
    present::Json point{{"choices", present::choices_json(studied.back().choices)}};
    point.update(present::to_json(studied.back().outcome));
    json["points"].push_back(std::move(point));
  }
  for (const study::DraftAdvice& each : study.advice) json["advice"].push_back(present::to_json(each));
  report.tables.push_back(present::drafts_table(title_of(asked), studied));
  report.tables.push_back(present::advice_table(study.advice));
  report.tables.push_back(present::break_even_table(study.advice));
  report.json["machines"].push_back(std::move(json));
}

void study_reported(const config::Scenario& scenario, const std::string& name, present::Report& report) {
  const config::Compare& compare = *scenario.compare;
  const std::vector<study::ReportedDraft> drafts = study::reported_drafts(scenario, name);
  const sim::Machine machine = study::resolve_machine(scenario, name);
  present::Table table = present::reported_drafts_table("Against " + compare.baseline + ", on " + machine.name, drafts);
  for (const config::Variant& variant : compare.variants)
    if (!variant.note.empty()) table.notes.push_back(variant.name + ": " + variant.note);
  table.notes.push_back("reported: " + compare.source);
  present::Json json{{"machine", machine.name}, {"reported", present::Json::array()}};
  for (const study::ReportedDraft& draft : drafts) json["reported"].push_back(present::to_json(draft));
  report.tables.push_back(std::move(table));
  report.json["machines"].push_back(std::move(json));
}

}  // namespace

void study_speculation(const config::Scenario& scenario, const std::vector<std::string>& machines,
                       present::Report& report) {
  if (scenario.workload.kind == config::WorkloadKind::step && scenario.workload.phase == Phase::prefill)
    throw InputError(scenario.file, "workload.phase: drafts follow a token that was decoded; set decode");
  if (scenario.compare)
    for (const std::string& assumption : scenario.compare->assumptions)
      report.heading.push_back("assumed: " + assumption);
  report.json["machines"] = present::Json::array();
  for (const std::string& name : machines)
    scenario.compare ? study_reported(scenario, name, report) : study_sweep(scenario, name, report);
}

}  // namespace dculab::cli

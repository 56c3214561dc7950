#include "present/study/study_report.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "present/output/conclusion.hpp"
#include "present/output/field_json.hpp"
#include "present/study/design_report.hpp"
#include "present/study/group_report.hpp"
#include "present/study/speculation_report.hpp"
#include "present/study/step_report.hpp"
#include "present/study/variants_report.hpp"
#include "present/values/subject.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::present {
namespace {

void add_answer(const std::vector<study::DesignStudy>& studies, const config::Scenario& scenario, Report& report) {
  add_designs(scenario.model.name, studies, report);
}

void add_answer(const std::vector<study::DraftStudy>& studies, const config::Scenario&, Report& report) {
  add_draft_studies(studies, report);
}

void add_answer(const std::vector<study::ReportedDrafts>& drafts, const config::Scenario& scenario, Report& report) {
  add_reported_drafts(*scenario.compare, drafts, report);
}

void add_answer(const study::ComparisonStudy& study, const config::Scenario& scenario, Report& report) {
  add_comparisons(scenario, study, report);
}

void add_answer(const study::GroupStudy& study, const config::Scenario& scenario, Report& report) {
  add_groups(scenario, study, report);
}

void add_answer(const std::vector<study::StepStudy>& studies, const config::Scenario&, Report& report) {
  add_step_studies(studies, report);
}

// Those of a part whose JSON has gone to `place` of the whole.
void move_answers(Report& part, const std::string& place, Report& whole) {
  for (CsvAnswer& answer : part.answers) {
    answer.place.insert(0, place);
    whole.answers.push_back(std::move(answer));
  }
}

}  // namespace

Report study_report(const config::Scenario& scenario) {
  return {"dculab/study/1",
          {scenario.question},
          {},
          Json{{"question", scenario.question}, {"subject", json_of(subject_of(scenario))}}};
}

Report studies_report() { return {"dculab/study/1", {}, {}, Json{{"studies", Json::array()}}}; }

void add_study_answer(const config::Scenario& scenario, const study::StudyAnswer& answer, Report& report) {
  std::visit([&](const auto& each) { add_answer(each, scenario, report); }, answer);
}

void conclude_stacks(const config::Scenario& scenario, Report& report) {
  if (const std::string stacks = study::differing_stacks(scenario); !stacks.empty())
    conclude(report, "The machines run different stacks (" + stacks +
                         "), so a difference between them is also one of kernels; --stack dculab gives all of them the "
                         "same.");
}

void add_follower(const config::Scenario& scenario, const std::vector<std::string>& notes, Report part,
                  Report& report) {
  for (const std::string& line : part.heading)  // its question stands above its tables
    if (line.starts_with("warning: ") && std::ranges::find(report.heading, line) == report.heading.end())
      report.heading.push_back(line);
  if (part.tables.empty()) return;
  move_conclusion(part, report);
  part.tables.front().title = "Then: " + scenario.question + "\n\n" + part.tables.front().title;
  for (Table& table : part.tables) report.tables.push_back(std::move(table));
  part.json["question"] = scenario.question;
  part.json["subject"] = json_of(subject_of(scenario));
  report.json["then"].push_back(std::move(part.json));
  move_answers(part, "/then/" + std::to_string(report.json["then"].size() - 1), report);
  add_warnings(report, notes);
}

void add_study(Report part, Report& all) {
  std::string heading;
  for (const std::string& line : part.heading) heading += line + "\n";
  part.tables.front().title = heading + "\n" + part.tables.front().title;
  for (Table& table : part.tables) all.tables.push_back(std::move(table));
  move_conclusion(part, all);
  all.json["studies"].push_back(std::move(part.json));
  move_answers(part, "/studies/" + std::to_string(all.json["studies"].size() - 1), all);
}

}  // namespace dculab::present

#include "study/answer/study_answer.hpp"

#include "study/answer/study_question.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] StudyAnswer answer_drafts(const config::Scenario& scenario, const std::vector<std::string>& machines) {
  if (scenario.compare) return reported_drafts(scenario, machines);
  std::vector<DraftStudy> studies;
  for (const std::string& machine : machines) studies.push_back(study_drafts(scenario, machine));
  return studies;
}

[[nodiscard]] std::vector<StepStudy> answer_steps(const config::Scenario& scenario,
                                                  const std::vector<sim::Machine>& machines, double within) {
  std::vector<StepStudy> studies;
  for (const sim::Machine& machine : machines) studies.push_back(study_steps(scenario, machine, within));
  return studies;
}

}  // namespace

StudyAnswer answer_study(const config::Scenario& scenario, const std::vector<std::string>& machines, double within) {
  const StudyKind kind = kind_of(scenario);
  if (kind == StudyKind::designs) return study_designs(scenario, machines);
  if (kind == StudyKind::drafts) return answer_drafts(scenario, machines);
  if (kind == StudyKind::comparison) return compare_variants(scenario, machines);
  std::vector<sim::Machine> resolved;
  for (const std::string& machine : machines) resolved.push_back(resolve_machine(scenario, machine));
  if (kind == StudyKind::groups) return study_groups(scenario, resolved);
  return answer_steps(scenario, resolved, within);
}

}  // namespace dculab::study

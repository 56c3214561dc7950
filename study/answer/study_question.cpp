#include "study/answer/study_question.hpp"

#include <filesystem>
#include <string>

#include "core/error.hpp"
#include "study/decide/designs.hpp"
#include "study/decide/draft_study.hpp"
#include "study/scenario/idle_axes.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/serving_scenario.hpp"
#include "study/scenario/speculation.hpp"
#include "study/search/search.hpp"

namespace dculab::study {

bool is_served(const config::Scenario& scenario) {
  return scenario.workload.kind == config::WorkloadKind::serving && !scenario.compare && !scenario.accuracy;
}

StudyKind kind_of(const config::Scenario& scenario) {
  if (!scenario.choose.empty()) return StudyKind::designs;
  if (asks_for_search(scenario) && !scenario.compare && !scenario.accuracy) return StudyKind::search;
  if (is_draft_study(scenario)) return StudyKind::drafts;
  if (scenario.compare) return StudyKind::comparison;
  const bool serves = scenario.workload.kind == config::WorkloadKind::serving;
  return scenario.accuracy && serves ? StudyKind::groups : StudyKind::steps;
}

void refuse_unanswered(const config::Scenario& scenario) {
  refuse_idle_axes(scenario);
  if (!scenario.choose.empty() || scenario.accuracy) refuse_drafts(scenario, "a study with choose or accuracy");
  if (asks_for_search(scenario) && !is_served(scenario)) refuse_drafts(scenario, "a search over steps");
  if (is_draft_study(scenario)) return;
  if (!scenario.choose.empty()) refuse_undecided(scenario);
  if (is_served(scenario) && kind_of(scenario) == StudyKind::search) return refuse_unserved(scenario);
  refuse_unsupported(scenario);
}

std::vector<config::Scenario> read_followers(const config::Scenario& scenario) {
  std::vector<config::Scenario> followers;
  for (const std::string& follower : scenario.then) {
    const std::filesystem::path beside = std::filesystem::path(scenario.file).parent_path() / follower;
    followers.push_back(read_with(std::filesystem::exists(beside) ? beside : find_scenario(follower), {}));
    refuse_unanswered(followers.back());
  }
  return followers;
}

}  // namespace dculab::study

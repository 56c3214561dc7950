// What a study of a scenario answers, whatever it asks; a search aside, which is its own (search/search.hpp).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "config/scenario_file.hpp"
#include "study/answer/comparison.hpp"
#include "study/decide/designs.hpp"
#include "study/decide/draft_study.hpp"
#include "study/decide/group_choice.hpp"
#include "study/decide/step_study.hpp"
#include "study/validate/reported_drafts.hpp"

namespace dculab::study {

// By StudyKind: designs, drafts and those that were reported, a comparison, groups, steps. Vectors are over machines.
using StudyAnswer = std::variant<std::vector<DesignStudy>, std::vector<DraftStudy>, std::vector<ReportedDrafts>,
                                 ComparisonStudy, GroupStudy, std::vector<StepStudy>>;

// `machines`: by name or file, in the place of the scenario's. `within`: see study_steps(). Precondition: the scenario
// is no search, and refuse_unanswered() lets it pass. Throws InputError.
[[nodiscard]] StudyAnswer answer_study(const config::Scenario& scenario, const std::vector<std::string>& machines,
                                       double within);

}  // namespace dculab::study

// What kind of question a scenario asks of `study`, and which are refused before any work.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scenario_file.hpp"

namespace dculab::study {

enum class StudyKind : std::uint8_t {
  search,      // an objective, a front or constraints (search/search.hpp)
  designs,     // a choice at every point of the other axes (decide/designs.hpp)
  drafts,      // what they are worth; with `compare`, beside published speed-ups (decide/draft_study.hpp)
  comparison,  // variants against a baseline (answer/comparison.hpp)
  groups,      // speed against measured accuracy (decide/group_choice.hpp)
  steps,       // a sweep of steps (decide/step_study.hpp)
};
[[nodiscard]] StudyKind kind_of(const config::Scenario& scenario);

// Requests that the engine serves in real time; compare has a closed form for them.
[[nodiscard]] bool is_served(const config::Scenario& scenario);

// Throws InputError for what neither steps nor requests answer.
void refuse_unanswered(const config::Scenario& scenario);

// The scenarios that `then` names, beside the first one's file or among the shipped ones. Throws InputError for those
// that are refused, too.
[[nodiscard]] std::vector<config::Scenario> read_followers(const config::Scenario& scenario);

}  // namespace dculab::study

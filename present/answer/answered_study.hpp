// The question of a scenario file, by the words of `dculab study`: answered, and events.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "present/answer/answered_search.hpp"
#include "present/output/report.hpp"
#include "study/scenario/load_question.hpp"

namespace dculab::present {

struct StudyQuestion {
  std::vector<std::string> scenarios;  // files, or names; "": the load alone
  std::string host_file{};             // the machine file that `machine: host` means; empty: none
  study::LoadQuestion load{};          // what it changes of the scenarios
  study::SearchChoices search{};
  // Adds to the report what this machine's engine measured of a scenario, in the place of a prediction; empty:
  // predicted.
  std::function<void(const config::Scenario&, Report&)> measure{};
};

// Of several scenarios one report: each one's heading stands above its first table. Throws InputError for what has no
// answer, and for choices that would change nothing.
[[nodiscard]] Report answered_study(const StudyQuestion& question, const SearchEvents& events);

}  // namespace dculab::present

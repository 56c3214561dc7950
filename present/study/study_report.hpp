// The report of `dculab study`: an answer whatever it is about, the studies that follow it, and several in one. What
// its JSON has is present/schema/study_document.hpp.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "present/output/report.hpp"
#include "study/answer/study_answer.hpp"

namespace dculab::present {

// Of a scenario without its answer, and of several studies without any.
[[nodiscard]] Report study_report(const config::Scenario& scenario);
[[nodiscard]] Report studies_report();

void add_study_answer(const config::Scenario& scenario, const study::StudyAnswer& answer, Report& report);

// Adds the report of a scenario that another one is followed by: its question stands above its tables, its JSON is an
// entry of `then`, its warnings and `notes` are the whole report's.
void add_follower(const config::Scenario& scenario, const std::vector<std::string>& notes, Report part, Report& report);

// Adds a report of several: its heading stands above its first table, its JSON is an entry of `studies`.
void add_study(Report part, Report& all);

// What else than the machines differs between them.
void conclude_stacks(const config::Scenario& scenario, Report& report);

}  // namespace dculab::present

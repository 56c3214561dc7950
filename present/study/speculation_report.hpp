// What drafts are worth, as tables and JSON.
#pragma once

#include <string>
#include <vector>

#include "config/sweep_axis.hpp"
#include "present/output/report.hpp"
#include "study/decide/draft_study.hpp"
#include "study/validate/reported_drafts.hpp"

namespace dculab::present {

// A point of a sweep.
struct StudiedDraft {
  std::vector<config::Override> choices;
  study::DraftOutcome outcome;
};

[[nodiscard]] Table drafts_table(const std::string& title, const std::vector<StudiedDraft>& drafts);
[[nodiscard]] Table advice_table(const std::vector<study::DraftAdvice>& advice);
// "105", "88, all that fit" or "pays at none".
[[nodiscard]] std::string break_even_text(const study::BreakEven& pays);
[[nodiscard]] Table break_even_table(const std::vector<study::DraftAdvice>& advice);
[[nodiscard]] Table reported_drafts_table(const std::string& title, const std::vector<study::ReportedDraft>& drafts);

[[nodiscard]] Json to_json(const study::DraftOutcome& outcome);
[[nodiscard]] Json to_json(const study::DraftAdvice& advice);
[[nodiscard]] Json to_json(const study::ReportedDraft& draft);

// The points of a sweep, what to draft at each batch and up to which batch that pays; JSON under "machines".
void add_draft_study(const study::DraftStudy& study, Report& report);

// Published speed-ups beside the closed form and the simulator, machine by machine; JSON under "machines".
void add_reported_drafts(const config::Compare& compare, const std::vector<study::ReportedDrafts>& machines,
                         Report& report);

// "verifies drafts of 4: 2.9 tokens a sequence and step are expected; ..."
[[nodiscard]] std::string drafts_line(const study::DraftOutcome& outcome);

}  // namespace dculab::present

// What drafts are worth, as tables; their fields in JSON are speculation_fields.hpp.
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

// The points of a sweep, what to draft at each batch and up to which batch that pays; JSON (predicted_fields.hpp).
void add_draft_studies(const std::vector<study::DraftStudy>& studies, Report& report);

// Published speed-ups beside the closed form and the simulator, machine by machine; JSON (predicted_fields.hpp).
void add_reported_drafts(const config::Compare& compare, const std::vector<study::ReportedDrafts>& machines,
                         Report& report);

// "verifies drafts of 4: 2.9 tokens a sequence and step are expected; ..."
[[nodiscard]] std::string drafts_line(const study::DraftOutcome& outcome);

}  // namespace dculab::present

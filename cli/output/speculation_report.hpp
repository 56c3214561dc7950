// What drafts are worth, as tables and JSON.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "config/sweep_axis.hpp"
#include "study/decide/speculation_advice.hpp"

namespace dculab::cli {

// A point of a sweep.
struct StudiedDraft {
  std::vector<config::Override> choices;
  study::DraftOutcome outcome;
};

// The points of a sweep that differ in batch and draft alone, and what they come to.
struct DraftAdvice {
  std::vector<config::Override> others;  // choices that they have in common
  struct OfBatch {
    int batch = 1;
    std::optional<study::DraftOutcome> best;  // nothing: no draft pays
  };
  std::vector<OfBatch> batches;
  struct OfShape {
    DraftShape shape;
    study::BreakEven break_even;
  };
  std::vector<OfShape> shapes;
};

// A published speed-up beside what is computed.
struct ReportedDraft {
  std::string variant;
  double rate = 0;  // of a chain: at which (1) of sim/speculation/acceptance.hpp gives as many tokens
  double cost = 0;  // of a draft step, over a plain one
  double closed_form = 1;
  study::DraftOutcome outcome;
  std::optional<double> simulated;  // TPOT without drafts over that with them, of served requests
  std::optional<double> reported;
};

[[nodiscard]] Table drafts_table(const std::string& title, const std::vector<StudiedDraft>& drafts);
[[nodiscard]] Table advice_table(const std::vector<DraftAdvice>& advice);
// "105", "88, all that fit" or "pays at none".
[[nodiscard]] std::string break_even_text(const study::BreakEven& pays);
[[nodiscard]] Table break_even_table(const std::vector<DraftAdvice>& advice);
[[nodiscard]] Table reported_drafts_table(const std::string& title, const std::vector<ReportedDraft>& drafts);

[[nodiscard]] Json to_json(const study::DraftOutcome& outcome);
[[nodiscard]] Json to_json(const DraftAdvice& advice);
[[nodiscard]] Json to_json(const ReportedDraft& draft);

// "verifies drafts of 4: 2.9 tokens a sequence and step are expected; ..."
[[nodiscard]] std::string drafts_line(const study::DraftOutcome& outcome);

}  // namespace dculab::cli

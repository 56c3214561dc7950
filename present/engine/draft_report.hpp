// What became of drafted tokens, as a line, cells of a table and JSON.
#pragma once

#include <string>
#include <vector>

#include "core/draft_counts.hpp"
#include "core/units.hpp"
#include "present/output/report.hpp"

namespace dculab::present {

// What was drafted in a run, and what it took.
struct DraftFigures {
  DraftCounts counts{};
  Seconds drafting{};   // time of the drafter
  Seconds verifying{};  // time of the model's steps

  [[nodiscard]] double drafting_share() const;  // of both
};

// "2.9 tokens a step; accepted by position 83 %, 71 %; drafting took 21 % of the time". Precondition: there were
// drafts.
[[nodiscard]] std::string draft_summary(const DraftFigures& figures);

// "tokens/draft", "accepted", "drafting": tokens that a step with a draft yields, by position the share of guesses that
// were accepted when those before were, and the share of the time. Dashes where nothing was drafted.
[[nodiscard]] std::vector<std::string> draft_columns();
[[nodiscard]] std::vector<Cell> draft_cells(const DraftFigures& figures);

[[nodiscard]] Json draft_json(const DraftFigures& figures);

}  // namespace dculab::present

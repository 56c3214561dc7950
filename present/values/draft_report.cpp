#include "present/values/draft_report.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string shares_text(const std::vector<DraftCounts::Place>& places) {
  std::string text;
  for (const DraftCounts::Place& place : places) text += (text.empty() ? "" : ", ") + percent(accepted_share(place));
  return text;
}

}  // namespace

double accepted_share(const DraftCounts::Place& place) {
  return place.tested > 0 ? static_cast<double>(place.accepted) / static_cast<double>(place.tested) : 0;
}

double DraftFigures::drafting_share() const {
  const Seconds both = drafting + verifying;
  return both > Seconds() ? drafting / both : 0;
}

std::string draft_summary(const DraftFigures& figures) {
  const DraftCounts& counts = figures.counts;
  std::string text = number(counts.mean_acceptance_length()) + " tokens a step with a draft; accepted by position " +
                     shares_text(counts.by_depth);
  if (counts.by_rank.size() > 1) text += ", by rank " + shares_text(counts.by_rank);
  return text + "; drafting took " + percent(figures.drafting_share()) + " of the time";
}

std::vector<std::string> draft_columns() { return {"tokens/draft", "accepted", "drafting"}; }

std::vector<Cell> draft_cells(const DraftFigures& figures) {
  if (figures.counts.num_drafts == 0) return {Cell("-"), Cell("-"), Cell("-")};
  const double length = figures.counts.mean_acceptance_length();
  return {Cell(number(length), length), Cell(shares_text(figures.counts.by_depth)),
          Cell(percent(figures.drafting_share()), figures.drafting_share())};
}

}  // namespace dculab::present

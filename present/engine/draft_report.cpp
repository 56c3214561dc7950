#include "present/engine/draft_report.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] double share_of(const DraftCounts::Place& place) {
  return place.tested > 0 ? static_cast<double>(place.accepted) / static_cast<double>(place.tested) : 0;
}

[[nodiscard]] std::string shares_text(const std::vector<DraftCounts::Place>& places) {
  std::string text;
  for (const DraftCounts::Place& place : places) text += (text.empty() ? "" : ", ") + percent(share_of(place));
  return text;
}

[[nodiscard]] Json places_json(const std::vector<DraftCounts::Place>& places) {
  Json json = Json::array();
  for (const DraftCounts::Place& place : places)
    json.push_back({{"tested", place.tested}, {"accepted", place.accepted}, {"acceptance_rate", share_of(place)}});
  return json;
}

}  // namespace

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

Json draft_json(const DraftFigures& figures) {
  const DraftCounts& counts = figures.counts;
  return {{"drafts", counts.num_drafts},
          {"draft_tokens", counts.num_draft_tokens},
          {"accepted_tokens", counts.num_accepted_tokens},
          {"mean_acceptance_length", counts.mean_acceptance_length()},
          {"by_position", places_json(counts.by_depth)},
          {"by_rank", places_json(counts.by_rank)},
          {"drafting_seconds", figures.drafting.value()},
          {"verifying_seconds", figures.verifying.value()},
          {"drafting_share", figures.drafting_share()}};
}

}  // namespace dculab::present

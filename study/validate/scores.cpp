#include "study/validate/scores.hpp"

#include <map>
#include <span>

namespace dculab::study {
namespace {

using ScoredRows = std::vector<const ScoredRow*>;

[[nodiscard]] Score score(const ScoredRows& rows) {
  std::vector<double> errors;
  double inside = 0;
  for (const ScoredRow* row : rows) {
    errors.push_back(row->time_error(row->predicted));
    inside += row->inside() ? 1 : 0;
  }
  return {sim::summarize_errors(std::span<const double>(errors)),
          rows.empty() ? 0 : inside / static_cast<double>(rows.size())};
}

// How a row belongs to a group, in the order of kScoreGroupings.
constexpr std::array<std::string ScoredRow::*, kScoreGroupings.size()> kKeys{&ScoredRow::kind, &ScoredRow::machine,
                                                                             &ScoredRow::model, &ScoredRow::software};

}  // namespace

ScoreSummary summarize(const std::vector<ScoredRow>& rows) {
  ScoredRows all;
  for (const ScoredRow& row : rows) all.push_back(&row);
  ScoreSummary summary{score(all), {}};
  for (std::size_t grouping = 0; grouping < kKeys.size(); ++grouping) {
    std::map<std::string, ScoredRows> groups;
    for (const ScoredRow* row : all)
      if (const std::string& key = row->*kKeys[grouping]; !key.empty()) groups[key].push_back(row);
    for (const auto& [name, members] : groups)
      summary.groups.push_back({kScoreGroupings[grouping], name, score(members)});
  }
  return summary;
}

}  // namespace dculab::study

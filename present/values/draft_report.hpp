// What became of drafted tokens, as a line, cells of a table and their fields in JSON.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/draft_counts.hpp"
#include "core/units.hpp"
#include "present/output/field_json.hpp"

namespace dculab::present {

// What was drafted in a run, and what it took.
struct DraftFigures {
  DraftCounts counts{};
  Seconds drafting{};   // time of the drafter
  Seconds verifying{};  // time of the model's steps

  [[nodiscard]] double drafting_share() const;  // of both
};

// Of the guesses that were tested; 0 where none was.
[[nodiscard]] double accepted_share(const DraftCounts::Place& place);

// "2.9 tokens a step; accepted by position 83 %, 71 %; drafting took 21 % of the time". Precondition: there were
// drafts.
[[nodiscard]] std::string draft_summary(const DraftFigures& figures);

// "tokens/draft", "accepted", "drafting": tokens that a step with a draft yields, by position the share of guesses that
// were accepted when those before were, and the share of the time. Dashes where nothing was drafted.
[[nodiscard]] std::vector<std::string> draft_columns();
[[nodiscard]] std::vector<Cell> draft_cells(const DraftFigures& figures);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<DraftCounts::Place> {
  using Place = DraftCounts::Place;
  static constexpr std::string_view id = "draft_place";
  static constexpr std::string_view doc = "Guesses for a place of drafts, or of a rank.";

  static constexpr auto fields =
      std::tuple(field("tested", "guesses that the model judged", unit::count, &Place::tested),
                 field("accepted", "guesses that were the model's own tokens", unit::count, &Place::accepted),
                 field("acceptance_rate", "of the tested ones", unit::share, &present::accepted_share));
};

template <>
struct FieldList<present::DraftFigures> {
  using Figures = present::DraftFigures;
  static constexpr std::string_view id = "drafts";
  static constexpr std::string_view doc = "What was drafted in a run, and what it took.";
  static constexpr auto fields =
      std::tuple(field("drafts", "steps of sequences that had a draft", unit::count,
                       [](const Figures& figures) { return figures.counts.num_drafts; }),
                 field("draft_tokens", "of all drafts", unit::tokens,
                       [](const Figures& figures) { return figures.counts.num_draft_tokens; }),
                 field("accepted_tokens", "of these", unit::tokens,
                       [](const Figures& figures) { return figures.counts.num_accepted_tokens; }),
                 field("mean_acceptance_length", "tokens that a step with a draft yields, the model's own among them",
                       unit::tokens, [](const Figures& figures) { return figures.counts.mean_acceptance_length(); }),
                 field("by_position", "of a draft; a place is tested when all before it were accepted",
                       [](const Figures& figures) { return figures.counts.by_depth; }),
                 field("by_rank", "of guesses for one place; a guess is tested when those of lower rank were rejected",
                       [](const Figures& figures) { return figures.counts.by_rank; }),
                 field("drafting_seconds", "time of the drafter", &Figures::drafting),
                 field("verifying_seconds", "time of the model's steps", &Figures::verifying),
                 field("drafting_share", "of both, the drafter's", unit::share, &Figures::drafting_share));
};

}  // namespace dculab

#include "present/answer/answered_search.hpp"

#include <optional>
#include <utility>

#include "present/study/search_report.hpp"
#include "present/study/study_report.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"
#include "study/search/search_answer.hpp"
#include "study/search/shards.hpp"

namespace dculab::present {
namespace {

void add_search_answer(const study::SweepSpace& space, const study::SearchSummary& summary,
                       const study::SearchChoices& choices, const SearchEvents& events, Report& report) {
  const study::AnswerOptions options{
      .threads = choices.pricing.workers(),
      .sensitivity_within = choices.sensitivity ? std::optional(choices.within) : std::nullopt};
  report_search(space, summary, study::answer_search(space, summary, options, events.progress), report);
}

}  // namespace

void search_study(const config::Scenario& scenario, const study::SearchChoices& choices, const SearchEvents& events,
                  Report& report) {
  study::refuse_incomplete(choices);
  const study::SweepSpace space(scenario);
  const study::SearchOptions options = choices.search_options();
  study::SearchEvents of_search{.progress = events.progress, .on_dropped_bytes = events.on_dropped_bytes};
  if (options.shards > 1) {
    study::search_shard(space, options, of_search);
    return add_shard(space, options, report);
  }
  PointsFile points(space, choices.points_file);
  of_search.on_points = points.on_points();
  const study::SearchSummary summary = study::search(space, options, of_search);
  points.keep();
  add_search_answer(space, summary, choices, events, report);
}

void merge_study(const std::vector<std::string>& journals, const study::SearchChoices& choices,
                 const SearchEvents& events, Report& report) {
  const study::ShardJournals shards(journals);
  const study::SweepSpace& space = shards.space();
  report = study_report(space.scenario().question);
  for (std::string& line : study::whose_kernels(space.scenario())) report.heading.push_back(std::move(line));
  add_warnings(report, study::model_notes(space.scenario()));
  PointsFile points(space, choices.points_file);
  const study::SearchSummary summary = shards.summary(points.on_points());
  points.keep();
  add_search_answer(space, summary, choices, events, report);
}

}  // namespace dculab::present

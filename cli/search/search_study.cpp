#include "cli/search/search_study.hpp"

#include <iostream>
#include <optional>

#include "cli/progress.hpp"
#include "fields/printable_text.hpp"
#include "present/study/search_report.hpp"
#include "present/study/study_report.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"
#include "study/search/shards.hpp"

namespace dculab::cli {
namespace {

void tell_dropped_bytes(const config::StudyJournal& journal) {
  std::cerr << "dculab: " << printable(journal.path()) << ": " << journal.num_chunks() << " of "
            << journal.header().end - journal.header().begin << " chunks are whole and kept; "
            << journal.num_dropped_bytes() << " bytes behind them are dropped\n";
}

void report_answer(const study::SweepSpace& space, const study::SearchSummary& summary, const SearchChoices& choices,
                   present::Report& report) {
  ProgressBar bar;
  const study::AnswerOptions options{
      .threads = choices.pricing.workers(),
      .sensitivity_within = choices.sensitivity ? std::optional(choices.within) : std::nullopt};
  const study::SearchAnswer answer = study::answer_search(
      space, summary, options, [&bar](const std::string& label, double share) { bar.update(label, share); });
  bar.clear();
  present::report_search(space, summary, answer, report);
}

}  // namespace

void search_study(const config::Scenario& scenario, const SearchChoices& choices, present::Report& report) {
  refuse_incomplete(choices);
  const study::SweepSpace space(scenario);
  const study::SearchOptions options = choices.search_options();
  ProgressBar bar;
  study::SearchEvents events{.progress = [&bar](const std::string& label, double share) { bar.update(label, share); },
                             .on_dropped_bytes = tell_dropped_bytes};
  if (options.shards > 1) {
    study::search_shard(space, options, events);
    bar.clear();
    return present::add_shard(space, options, report);
  }
  present::PointsFile points(space, choices.points_file);
  events.on_points = points.on_points();
  const study::SearchSummary summary = study::search(space, options, events);
  bar.clear();
  points.keep();
  report_answer(space, summary, choices, report);
}

void merge_study(const std::vector<std::string>& journals, const SearchChoices& choices, present::Report& report) {
  const study::ShardJournals shards(journals);
  const study::SweepSpace& space = shards.space();
  report = present::study_report(space.scenario().question);
  for (std::string& line : study::whose_kernels(space.scenario())) report.heading.push_back(std::move(line));
  present::add_warnings(report, study::model_notes(space.scenario()));
  present::PointsFile points(space, choices.points_file);
  const study::SearchSummary summary = shards.summary(points.on_points());
  points.keep();
  report_answer(space, summary, choices, report);
}

}  // namespace dculab::cli

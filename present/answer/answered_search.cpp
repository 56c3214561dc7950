#include "present/answer/answered_search.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "present/study/search_report.hpp"
#include "present/study/study_report.hpp"
#include "study/answer/study_question.hpp"
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

// "35 min", "12 h", "40 days"
[[nodiscard]] std::string long_time(Seconds time) {
  constexpr double kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  const double seconds = time.value();
  if (seconds < 2 * kMinute) return number(seconds, 2) + " s";
  if (seconds < 2 * kHour) return number(seconds / kMinute, 2) + " min";
  return seconds < 2 * kDay ? number(seconds / kHour, 2) + " h" : number(seconds / kDay, 2) + " days";
}

[[nodiscard]] std::string cost_text(const study::SearchCost& cost) {
  std::string text = grouped_digits(cost.points) + " points take about " + long_time(cost.time) + " on " +
                     counted(cost.threads, "thread") + ", " + config::short_text(cost.memory) + " of memory and ";
  return text + (cost.journal > Bytes()
                     ? config::short_text(cost.journal) + " for the journal"
                     : "no journal, so they are lost when it is stopped (--journal FILE keeps them)");
}

}  // namespace

void ask_before_long_search(const config::Scenario& scenario, const study::SearchChoices& choices,
                            const SearchEvents& events) {
  const std::uint64_t points = config::num_points(scenario.sweep) / static_cast<std::uint64_t>(choices.pricing.shards);
  const bool is_long = study::kind_of(scenario) == study::StudyKind::search && points > study::kMostUnasked;
  if (!is_long || choices.yes || choices.resume || choices.salvage) return;
  study::refuse_incomplete(choices);
  const std::string cost = cost_text(study::search_cost(study::SweepSpace(scenario), choices.pricing));
  if (!events.agrees || !events.agrees(cost))
    throw InputError(scenario.file, "sweep: " + cost + "; start it with --yes, or sweep fewer");
}

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
  report = study_report(space.scenario());
  for (std::string& line : study::whose_kernels(space.scenario())) report.heading.push_back(std::move(line));
  add_warnings(report, study::model_notes(space.scenario()));
  PointsFile points(space, choices.points_file);
  const study::SearchSummary summary = shards.summary(points.on_points());
  points.keep();
  add_search_answer(space, summary, choices, events, report);
}

}  // namespace dculab::present

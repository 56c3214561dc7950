// A study that searches, and one that is put together of shards: run, then events.
#pragma once

#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "study/search/search_choices.hpp"

namespace dculab::present {

// Called while it runs. Each may be empty.
struct SearchEvents {
  study::SearchProgress progress{};
  std::function<void(const config::StudyJournal&)> on_dropped_bytes{};  // before anything is priced
  // Whether a search that takes so much may begin: "4,423,680,000 points take about 12 h ..."; empty: it may not.
  std::function<bool(const std::string& cost)> agrees{};
};

// Throws InputError, which says what it takes, for a search of more than study::kMostUnasked points to which nobody
// agrees. Nothing is asked of one that is resumed.
void ask_before_long_search(const config::Scenario& scenario, const study::SearchChoices& choices,
                            const SearchEvents& events);

// Adds the answer to the report; of one of several shards only how far it is. Throws InputError.
void search_study(const config::Scenario& scenario, const study::SearchChoices& choices, const SearchEvents& events,
                  Report& report);

// The answer of the whole study, from the journals of all its shards. Throws InputError.
void merge_study(const std::vector<std::string>& journals, const study::SearchChoices& choices,
                 const SearchEvents& events, Report& report);

}  // namespace dculab::present

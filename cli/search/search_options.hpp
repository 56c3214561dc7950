// The options of a search, for `study` and `merge`.
#pragma once

#include "cli/progress.hpp"
#include "present/answer/answered_search.hpp"
#include "study/search/search_choices.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

// What becomes of the points: --points, --sensitivity, --within.
void add_answer_options(CLI::App& command, study::SearchChoices& choices);

// How they are priced: --threads, --journal, --resume, --salvage, --shard.
void add_pricing_options(CLI::App& command, study::SearchChoices& choices);

// On the terminal: a bar, and a line about what of a journal is dropped.
[[nodiscard]] present::SearchEvents search_events(ProgressBar& bar);

}  // namespace dculab::cli

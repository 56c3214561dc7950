// The options of a search, for `study` and `merge`.
#pragma once

#include "cli/search/search.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

// What becomes of the points: --points, --sensitivity, --within.
void add_answer_options(CLI::App& command, SearchOptions& options);

// How they are priced: --threads, --journal, --resume, --salvage, --shard.
void add_pricing_options(CLI::App& command, SearchOptions& options);

// The first option given of those that say where the points of one search go: --journal, --resume, --salvage,
// --shard, --points. Empty where none is given.
[[nodiscard]] std::string files_option(const SearchOptions& options);

// The same, and --threads.
[[nodiscard]] std::string search_option(const SearchOptions& options);

}  // namespace dculab::cli

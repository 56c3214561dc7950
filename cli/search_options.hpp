// The options of a search, for `study` and `merge`.
#pragma once

#include "cli/search.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

// What becomes of the points: --points, --sensitivity, --within.
void add_answer_options(CLI::App& command, SearchOptions& options);

// How they are priced: --threads, --journal, --resume, --shard.
void add_pricing_options(CLI::App& command, SearchOptions& options);

// Whether an option that only a search takes was given.
[[nodiscard]] bool asks_for_search(const SearchOptions& options);

}  // namespace dculab::cli

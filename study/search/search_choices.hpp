// A search by the words of `dculab study` and `dculab merge`: where its points go and what is told of them.
#pragma once

#include <string>

#include "study/search/search.hpp"

namespace dculab::study {

struct SearchChoices {
  SearchOptions pricing;
  bool resume = false;      // with the journal that is there
  bool salvage = false;     // the same, also where it is damaged
  bool yes = false;         // however many points there are
  std::string points_file;  // CSV of all points; empty: none
  bool sensitivity = false;
  double within = 4;  // each way, of a machine's figures

  // Those of the search, which has a start for its journal.
  [[nodiscard]] SearchOptions search_options() const;
};

// Throws InputError for options that lack another.
void refuse_incomplete(const SearchChoices& choices);

// The first option given of those that say where the points of one search go: --journal, --resume, --salvage,
// --shard, --points. Empty where none is given.
[[nodiscard]] std::string files_option(const SearchChoices& choices);

// The same, and --threads.
[[nodiscard]] std::string search_option(const SearchChoices& choices);

}  // namespace dculab::study

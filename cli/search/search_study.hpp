// A study that searches, and one that is put together of shards: run, then reported.
#pragma once

#include <string>
#include <vector>

#include "cli/search/search_options.hpp"
#include "present/output/report.hpp"

namespace dculab::cli {

// Adds the answer to the report; of one of several shards only how far it is. Throws InputError.
void search_study(const config::Scenario& scenario, const SearchChoices& choices, present::Report& report);

// The answer of the whole study, from the journals of all its shards. Throws InputError.
void merge_study(const std::vector<std::string>& journals, const SearchChoices& choices, present::Report& report);

}  // namespace dculab::cli

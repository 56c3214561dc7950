// A study that searches: every point of a sweep of any size, a step to price or requests to serve, on all cores; the
// best under constraints, the Pareto front, and what would change the answer. It can be stopped anywhere and go on, and
// be shared out in parts.
#pragma once

#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "config/scenario_file.hpp"
#include "config/study_journal.hpp"

namespace dculab::cli {

struct SearchOptions {
  int threads = 0;       // 0: all cores
  std::string journal;   // of finished chunks; empty: none
  bool resume = false;   // with the journal that is there
  bool salvage = false;  // the same, also where it is damaged
  int shard = 1;         // part `shard` of `shards`, into the journal
  int shards = 1;
  std::string points_file;  // CSV of all points; empty: none
  bool sensitivity = false;
  double within = 4;  // each way, of a machine's figures

  [[nodiscard]] config::JournalStart journal_start() const;
  [[nodiscard]] int workers() const;  // threads, where all cores are a number
};

// Whether a scenario asks for a search: for an objective, a Pareto front or constraints, or with axes that only a
// search takes (drawn ones, machines and their figures, more points than a table holds).
[[nodiscard]] bool asks_for_search(const config::Scenario& scenario);

// Adds the answer to the report; of one of several shards only how far it is. Throws InputError.
void search(const config::Scenario& scenario, const SearchOptions& options, Report& report);

// The answer of the whole study, from the journals of all its shards. Throws InputError when one is missing, there
// twice, unfinished or of another study.
void merge(const std::vector<std::string>& journals, const SearchOptions& options, Report& report);

}  // namespace dculab::cli

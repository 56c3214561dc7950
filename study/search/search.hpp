// A study that searches: every point of a sweep of any size, a step to price or requests to serve, on all cores; the
// best under constraints and the Pareto front. It can be stopped anywhere and go on, and be shared out in parts, whose
// journals shards.hpp puts together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "config/scenario_file.hpp"
#include "config/study_journal.hpp"
#include "core/units.hpp"
#include "study/search/chunks.hpp"

namespace dculab::study {

struct SearchOptions {
  int threads = 0;        // 0: all cores
  std::string journal{};  // of finished chunks; empty: none
  config::JournalStart start = config::JournalStart::create;
  int shard = 1;  // part `shard` of `shards`, into the journal
  int shards = 1;

  [[nodiscard]] int workers() const;  // threads, where all cores are a number
};

// What a search tells while it runs. Each may be empty.
struct SearchEvents {
  SearchProgress progress{};
  OnPoints on_points{};                                                 // not of a shard
  std::function<void(const config::StudyJournal&)> on_dropped_bytes{};  // before anything is priced
};

// Points that a search may have without anybody being asked: some half an hour of one core.
inline constexpr std::uint64_t kMostUnasked = 100'000'000;

// What a search will take, as some of its chunks say which are priced for it.
struct SearchCost {
  std::uint64_t points = 0;  // of the shard
  int threads = 1;
  Seconds time;
  Bytes memory;   // of this program
  Bytes journal;  // 0: none is kept
};
[[nodiscard]] SearchCost search_cost(const SweepSpace& space, const SearchOptions& options);

// Whether a scenario asks for a search: for an objective, a Pareto front or constraints, or with axes that only a
// search takes (drawn ones, machines and their figures, more points than a table holds).
[[nodiscard]] bool asks_for_search(const config::Scenario& scenario);

// Throws InputError where no point can be. Precondition: one shard.
[[nodiscard]] SearchSummary search(const SweepSpace& space, const SearchOptions& options,
                                   const SearchEvents& events = {});

// Prices the points of one of several shards into its journal.
void search_shard(const SweepSpace& space, const SearchOptions& options, const SearchEvents& events = {});

}  // namespace dculab::study

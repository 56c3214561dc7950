// How the answer of a search is reported.
#pragma once

#include <optional>
#include <string>

#include "files/output.hpp"
#include "present/output/report.hpp"
#include "study/search/search.hpp"
#include "study/search/search_answer.hpp"

namespace dculab::present {

// Every point of a search as CSV, in a file that is there once all of them are.
class PointsFile {
 public:
  // `file` empty: none is written. Throws InputError where it cannot be.
  PointsFile(const study::SweepSpace& space, const std::string& file);

  // Takes points in; empty where no file is written.
  [[nodiscard]] study::OnPoints on_points();
  void keep();

 private:
  const study::SweepSpace& space_;
  std::optional<files::GrowingFile> file_;
};

// The best points, the best of each value and of each group and block size, the front, and what would change the answer
// where that was asked.
void report_search(const study::SweepSpace& space, const study::SearchSummary& summary,
                   const study::SearchAnswer& answer, Report& report);

// How far the search of one of several shards is.
void add_shard(const study::SweepSpace& space, const study::SearchOptions& options, Report& report);

}  // namespace dculab::present

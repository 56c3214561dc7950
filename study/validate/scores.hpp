// Predicted against measured: rows, what is left out and why, and the errors over all rows and by group.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/calibration/errors.hpp"
#include "study/calibrate/left_out_rows.hpp"

namespace dculab::study {

struct ScoredRow {
  int line = 0;  // in the file, or the step's number
  std::string id, kind, machine, model, software;
  double measured = 0;
  double predicted = 0;
  double low = 0, high = 0;  // 90 % interval
  std::string unit;          // "s" or "tokens/s"
  std::string basis;
  std::string bound;
  std::string note;
  double naive = 0;  // what the naive roofline says; 0 = not asked

  [[nodiscard]] double ratio() const { return predicted / measured; }
  // Error of the time behind the row: a rate's is measured / predicted - 1, so that > 0 is too slow in every row.
  [[nodiscard]] double time_error(double prediction) const {
    return (unit == "s" ? prediction / measured : measured / prediction) - 1;
  }
  [[nodiscard]] bool inside() const { return low <= measured && measured <= high; }
};

struct Scores {
  std::vector<ScoredRow> rows;
  std::vector<LeftOutRow> refused;   // below the physical floor
  std::vector<LeftOutRow> unpriced;  // nothing to price them as
};

// The errors of some rows' times, and the share of the measurements inside their interval.
struct Score {
  sim::ErrorSummary error;
  double inside = 0;
};

struct GroupScore {
  std::string by;    // "kind", "machine", "model", "software"
  std::string name;  // of the group
  Score score;
};

struct ScoreSummary {
  Score all;
  std::vector<GroupScore> groups;  // by kind, then by machine, model and software; rows without a name are in none
};

inline constexpr std::array<const char*, 4> kScoreGroupings{"kind", "machine", "model", "software"};

[[nodiscard]] ScoreSummary summarize(const std::vector<ScoredRow>& rows);

}  // namespace dculab::study

// Predicted against measured: rows, what is left out and why, and the errors over all rows and by group.
#pragma once

#include <string>
#include <vector>

#include "cli/output/output.hpp"

namespace dculab::cli {

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

// A row that is not scored.
struct LeftOutRow {
  int line = 0;
  std::string id;
  std::string reason;
};

struct Scores {
  std::vector<ScoredRow> rows;
  std::vector<LeftOutRow> refused;   // below the physical floor
  std::vector<LeftOutRow> unpriced;  // nothing to price them as
};

// What is not scored, with its reasons: lines of the heading, and `refused` and `not_priced` of the JSON.
void add_left_out_rows(const Scores& scores, Report& report);

// Those, then rows and errors. `worst`: the table shows only so many rows, the worst first; 0 = all, in the file's
// order. JSON and CSV have all.
void add_scores(const Scores& scores, int worst, Format format, Report& report);

}  // namespace dculab::cli

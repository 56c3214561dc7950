// Measured rows that are neither scored nor fitted, and why.
#pragma once

#include <string>
#include <vector>

namespace dculab::study {

// A row that is not scored.
struct LeftOutRow {
  int line = 0;
  std::string id;
  std::string reason;
  std::string group;  // of rows that are told in one line: the reason, or what could not be so fast
};

// "refused: 12 rows, first row 3 (decode ...): ...": a line for each group, `what` at its beginning.
[[nodiscard]] std::vector<std::string> grouped_lines(const std::string& what, const std::vector<LeftOutRow>& rows);

}  // namespace dculab::study

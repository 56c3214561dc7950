#include "study/calibrate/left_out_rows.hpp"

#include <algorithm>
#include <utility>

namespace dculab::study {

std::vector<std::string> grouped_lines(const std::string& what, const std::vector<LeftOutRow>& rows) {
  std::vector<std::pair<const LeftOutRow*, int>> groups;  // the first row of each, and how many there are
  for (const LeftOutRow& row : rows) {
    const auto known =
        std::ranges::find_if(groups, [&row](const auto& group) { return group.first->group == row.group; });
    if (known == groups.end())
      groups.emplace_back(&row, 1);
    else
      ++known->second;
  }
  std::vector<std::string> lines;
  for (const auto& [row, count] : groups)
    lines.push_back(what + ": " + (count > 1 ? std::to_string(count) + " rows, first " : "") + "row " +
                    std::to_string(row->line) + " (" + row->id + "): " + row->reason);
  return lines;
}

}  // namespace dculab::study

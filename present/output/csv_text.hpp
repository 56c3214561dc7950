// The CSV of a report: the rows of its answers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "present/output/report.hpp"

namespace dculab::present {

struct CsvTable {
  struct Column {
    std::string header;
    std::vector<std::string> cells;
  };
  std::vector<Column> columns{};  // each has a cell for each row, and no two have one header
  std::size_t rows = 0;
};

// Of several answers all rows, in their order; the first column is then their `question`.
[[nodiscard]] CsvTable csv_of(const Report& report);

// A line of headers, then one a row.
[[nodiscard]] std::string csv_text(const CsvTable& table);

// A cell or a header, quoted where it must be.
[[nodiscard]] std::string csv_field(const std::string& text);

}  // namespace dculab::present

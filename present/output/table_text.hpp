// Tables as text: columns of numbers are aligned right, columns of words left.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "present/output/report.hpp"

namespace dculab::present {

// Title, head, a line, rows, notes. With a `width`, in columns of a terminal, a table that is wider is made narrower:
// first its words are wrapped, then the columns that still have no room go below the others, each time after those that
// tell the rows apart. Without one, a table with a usual width wraps the words of all columns but the first. Titles and
// notes are not wrapped.
[[nodiscard]] std::string table_text(const Table& table, std::optional<std::size_t> width);

// "12.3 ms", "± 4 %", "−2", "8 .. 16", "3 of 4": more a number than a name.
[[nodiscard]] bool is_number(const std::string& cell);

}  // namespace dculab::present

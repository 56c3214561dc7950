#include "config/csv_text.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace dculab::config {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

CsvReader::CsvReader(std::string_view text) : rest_(text) {
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
}

bool CsvReader::step_over_line_end() {
  const std::size_t length = rest_.starts_with("\r\n") ? 2 : rest_.starts_with('\n') ? 1 : 0;
  rest_.remove_prefix(length);
  line_ += length > 0 ? 1 : 0;
  return length > 0;
}

void CsvReader::skip_line() {
  rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
  step_over_line_end();
}

// Behind the opening quote.
void CsvReader::read_quoted(std::string& cell) {
  while (true) {
    const std::size_t quote = rest_.find('"');
    if (quote == std::string_view::npos) {
      rest_ = {};
      throw InputError("a quoted cell does not end; close the quote");
    }
    const std::string_view piece = rest_.substr(0, quote);
    line_ += static_cast<int>(std::count(piece.begin(), piece.end(), '\n'));
    cell += piece;
    rest_.remove_prefix(quote + 1);
    if (!rest_.starts_with('"')) return;
    cell += '"';
    rest_.remove_prefix(1);
  }
}

void CsvReader::read_plain(std::string& cell) {
  const std::size_t end = std::min(rest_.find_first_of(",\"\n"), rest_.size());
  const bool has_return = rest_.substr(0, end).ends_with('\r') && rest_.substr(end).starts_with('\n');
  cell += rest_.substr(0, has_return ? end - 1 : end);
  rest_.remove_prefix(end);
  if (!rest_.starts_with('"')) return;
  skip_line();
  throw InputError("a quote inside an unquoted cell; quote the whole cell");
}

bool CsvReader::next(CsvRecord& record) {
  while (step_over_line_end()) continue;
  record.line = line_;
  record.cells.clear();
  if (rest_.empty()) return false;
  while (true) {
    std::string& cell = record.cells.emplace_back();
    if (rest_.starts_with('"')) {
      rest_.remove_prefix(1);
      read_quoted(cell);
    } else {
      read_plain(cell);
    }
    if (rest_.empty() || step_over_line_end()) return true;
    if (!rest_.starts_with(',')) {
      skip_line();
      throw InputError("text behind a closing quote; double the quotes inside a quoted cell");
    }
    rest_.remove_prefix(1);
  }
}

}  // namespace dculab::config

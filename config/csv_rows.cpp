#include "config/csv_rows.hpp"

#include <utility>

#include "config/csv_text.hpp"
#include "core/error.hpp"
#include "fields/utf8.hpp"

namespace dculab::config {
namespace {

Node row_node(const std::vector<std::string>& columns, std::vector<std::string> cells, int line) {
  Node node;
  node.kind = NodeKind::map;
  node.place = {line, 0};
  for (std::size_t index = 0; index < columns.size(); ++index) {
    if (cells[index].empty()) continue;
    Node cell;
    cell.kind = NodeKind::scalar;
    cell.text = std::move(cells[index]);
    cell.key = columns[index];
    cell.key_place = cell.place = node.place;
    node.children.push_back(std::move(cell));
  }
  return node;
}

std::vector<std::string> read_columns(const std::string& file, CsvReader& reader) {
  CsvRecord record;
  bool is_there = false;
  try {
    is_there = reader.next(record);
  } catch (const InputError& error) {
    throw InputError(file, record.line, error.what());
  }
  if (!is_there) throw InputError(file, "is empty; its first line must name the columns");
  return record.cells;
}

}  // namespace

std::vector<Node> csv_rows(const std::string& file, const std::string& text, ProblemList& problems) {
  require_utf8(file, text);
  CsvReader reader(text);
  const std::vector<std::string> columns = read_columns(file, reader);
  std::vector<Node> rows;
  CsvRecord record;
  for (bool more = true; more;) {
    try {
      more = reader.next(record);
      if (!more) break;
      if (record.cells.size() != columns.size())
        throw InputError(std::to_string(record.cells.size()) + " cells, but the first line names " +
                         std::to_string(columns.size()) + " columns");
      rows.push_back(row_node(columns, std::move(record.cells), record.line));
    } catch (const InputError& error) {
      problems.add({record.line, 0}, "", error.what());
    }
  }
  return rows;
}

}  // namespace dculab::config

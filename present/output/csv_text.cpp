#include "present/output/csv_text.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dculab::present {
namespace {

using Kind = CsvShape::Kind;
using Values = std::vector<const Json*>;  // one a row; null where it is absent

// A row, and what it is within.
struct FoundRow {
  std::vector<const Json*> items;  // of each step; the last is the row
  std::vector<std::string> keys;   // of each step; empty where it is into a list
};

[[nodiscard]] const Json* member(const Json* object, const std::string& key) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(key);
  return found == object->end() ? nullptr : &*found;
}

[[nodiscard]] Values members(const Values& objects, const std::string& key) {
  Values values;
  for (const Json* object : objects) values.push_back(member(object, key));
  return values;
}

// All digits that tell a number from others; nothing of what is no number or absent.
[[nodiscard]] std::string cell_of(const Json* value) {
  if (value == nullptr || value->is_null() || value->is_structured()) return "";
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number_float() && !std::isfinite(value->get<double>())) return "";
  return value->dump();
}

[[nodiscard]] std::string list_cell(const Json* list) {
  if (list == nullptr) return "";
  std::string text;
  for (const Json& item : *list) text.append(&item == &list->front() ? "" : ";").append(cell_of(&item));
  return text;
}

[[nodiscard]] const Json* end_of(const Json* interval, std::size_t end) {
  return interval == nullptr || !interval->is_array() || interval->size() != 2 ? nullptr : &(*interval)[end];
}

// Those that some row has, in the order in which they come.
[[nodiscard]] std::vector<std::string> data_keys(const Values& objects) {
  std::vector<std::string> keys;
  for (const Json* object : objects)
    if (object != nullptr && object->is_object())
      for (const auto& [key, value] : object->items())
        if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  return keys;
}

class Columns {
 public:
  explicit Columns(CsvTable& table) : table_(table) {}

  void add(const CsvShape& shape, const std::string& header, const Values& values) {
    switch (shape.kind) {
      case Kind::value:
        return add_cells(header, values, cell_of);
      case Kind::list:
        return add_cells(header, values, list_cell);
      case Kind::interval:
        add_cells(header + ".low", values, [](const Json* value) { return cell_of(end_of(value, 0)); });
        return add_cells(header + ".high", values, [](const Json* value) { return cell_of(end_of(value, 1)); });
      case Kind::object:
        for (const CsvShape& part : shape.parts) add_part(part, header, values);
        return;
      case Kind::members:
        for (const std::string& key : data_keys(values))
          add(shape.parts.front(), joined(header, key), members(values, key));
        return;
      case Kind::keyed:
      case Kind::none:
        return;
    }
  }

  // Of objects whose header is `header`, if they have one.
  void add_part(const CsvShape& part, const std::string& header, const Values& objects) {
    if (part.kind != Kind::keyed) return add(part, joined(header, part.key), members(objects, part.key));
    const std::vector<std::string> found = data_keys(objects);
    for (const std::string& key : part.keys)
      if (std::ranges::find(found, key) != found.end())
        add(part.parts.front(), joined(header, key), members(objects, key));
  }

  void add_texts(const std::string& header, std::vector<std::string> cells) {
    if (std::ranges::find(table_.columns, header, &CsvTable::Column::header) == table_.columns.end())
      table_.columns.push_back({header, std::move(cells)});
  }

 private:
  [[nodiscard]] static std::string joined(const std::string& header, const std::string& key) {
    return header.empty() ? key : header + "." + key;
  }

  template <class Text>
  void add_cells(const std::string& header, const Values& values, Text&& text) {
    std::vector<std::string> cells;
    for (const Json* value : values) cells.push_back(text(value));
    add_texts(header, std::move(cells));
  }

  CsvTable& table_;
};

void find_rows(const Json& item, const std::vector<CsvStep>& steps, FoundRow& within, std::vector<FoundRow>& found) {
  const std::size_t depth = within.keys.size();
  if (depth == steps.size()) return found.push_back(within);
  const Json* items = member(&item, steps[depth].key);
  if (items == nullptr) return;
  for (const auto& [key, each] : items->items()) {
    within.items.push_back(&each);
    within.keys.push_back(steps[depth].is_members ? key : "");
    find_rows(each, steps, within, found);
    within.items.pop_back();
    within.keys.pop_back();
  }
}

[[nodiscard]] CsvTable table_of(const Json& answer, const CsvRows& rows) {
  std::vector<FoundRow> found;
  FoundRow within{{&answer}, {}};
  find_rows(answer, rows.steps, within, found);
  CsvTable table{{}, found.size()};
  Columns columns(table);
  Values items(found.size());
  for (std::size_t depth = 0; depth < rows.steps.size(); ++depth) {
    const CsvStep& step = rows.steps[depth];
    std::transform(found.begin(), found.end(), items.begin(),
                   [depth](const FoundRow& row) { return row.items[depth + 1]; });
    std::vector<std::string> keys;
    for (const FoundRow& row : found) keys.push_back(row.keys[depth]);
    if (step.is_members) columns.add_texts(step.key, std::move(keys));
    for (const CsvShape& part : step.repeated) columns.add_part(part, "", items);
  }
  std::transform(found.begin(), found.end(), items.begin(), [](const FoundRow& row) { return row.items.back(); });
  columns.add(rows.row, "", items);
  return table;
}

[[nodiscard]] CsvTable table_of(const Json& json, const CsvAnswer& answer) {
  const Json& document = json.at(Json::json_pointer(answer.place));
  if (answer.ways.empty()) return {};
  const auto has = [&document](const CsvRows& rows) {
    return rows.steps.empty() || document.contains(rows.steps.front().key);
  };
  const auto way = std::ranges::find_if(answer.ways, has);
  return table_of(document, way == answer.ways.end() ? answer.ways.back() : *way);
}

// Rows below rows: cells of columns that one of both lacks are empty.
void append(CsvTable& all, CsvTable table) {
  const std::size_t rows = all.rows + table.rows;
  for (CsvTable::Column& column : table.columns) {
    auto known = std::ranges::find(all.columns, column.header, &CsvTable::Column::header);
    if (known == all.columns.end())
      known = all.columns.insert(all.columns.end(), {column.header, std::vector<std::string>(all.rows)});
    std::ranges::move(column.cells, std::back_inserter(known->cells));
  }
  for (CsvTable::Column& column : all.columns) column.cells.resize(rows);
  all.rows = rows;
}

template <class Text>
void add_line(std::string& lines, const std::vector<CsvTable::Column>& columns, Text&& text) {
  for (const CsvTable::Column& column : columns)
    lines.append(&column == &columns.front() ? "" : ",").append(csv_field(text(column)));
  lines += '\n';
}

}  // namespace

CsvTable csv_of(const Report& report) {
  if (report.answers.size() == 1) return table_of(report.json, report.answers.front());
  CsvTable all;
  for (const CsvAnswer& answer : report.answers) {
    CsvTable table = table_of(report.json, answer);
    const Json* question = member(&report.json.at(Json::json_pointer(answer.place)), "question");
    table.columns.insert(table.columns.begin(), {"question", std::vector<std::string>(table.rows, cell_of(question))});
    append(all, std::move(table));
  }
  return all;
}

std::string csv_text(const CsvTable& table) {
  std::string lines;
  add_line(lines, table.columns, [](const CsvTable::Column& column) { return column.header; });
  for (std::size_t row = 0; row < table.rows; ++row)
    add_line(lines, table.columns, [row](const CsvTable::Column& column) { return column.cells[row]; });
  return lines;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::vector<std::vector<CsvPathStep>> csv_paths(std::string_view text) {
  std::vector<std::vector<CsvPathStep>> paths(1, std::vector<CsvPathStep>(1));
  bool is_repeated = false;  // within brackets
  for (const char c : text) {
    CsvPathStep& step = paths.back().back();
    if (c == '|')
      paths.emplace_back(1);
    else if (c == '[' || c == ']')
      is_repeated = c == '[';
    else if (c == '.' && !is_repeated)
      paths.back().emplace_back();
    else if (!is_repeated)
      step.key += c;
    if (is_repeated && (c == '[' || c == ','))
      step.repeated.emplace_back();
    else if (is_repeated && c != ' ')
      step.repeated.back() += c;
  }
  return paths;
}

}  // namespace dculab::present

#include "present/output/show.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include "files/output.hpp"
#include "present/output/html_page.hpp"
#include "present/output/standard_output.hpp"

namespace dculab::present {
namespace {

// Columns on a terminal: code points, not bytes.
[[nodiscard]] std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void pad(std::ostream& out, const std::string& text, std::size_t columns, Align align) {
  const std::string blanks(columns - std::min(columns, width(text)), ' ');
  if (align == Align::left)
    out << text << blanks;
  else
    out << blanks << text;
}

void print_table(std::ostream& out, const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::size_t widest = width(table.columns[column]);
    for (const auto& row : table.rows)
      if (column < row.size()) widest = std::max(widest, width(row[column].text));
    widths.push_back(widest);
  }
  const auto align = [&table](std::size_t column) { return column == 0 ? table.first_column : Align::right; };
  const auto print_row = [&](const auto& text_of, std::size_t cells) {
    std::ostringstream line;
    for (std::size_t column = 0; column < cells; ++column) {
      if (column > 0) line << "  ";
      pad(line, text_of(column), widths[column], align(column));
    }
    std::string text = line.str();
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << '\n';
  };
  if (!table.title.empty()) out << table.title << '\n';
  print_row([&](std::size_t column) { return table.columns[column]; }, table.columns.size());
  std::size_t total = 2 * (widths.size() - 1);
  for (const std::size_t each : widths) total += each;
  for (std::size_t index = 0; index < total; ++index) out << "─";
  out << '\n';
  for (const auto& row : table.rows)
    print_row([&](std::size_t column) { return row[column].text; }, std::min(row.size(), widths.size()));
  for (const std::string& note : table.notes) out << note << '\n';
}

// None is empty, and no two are alike.
[[nodiscard]] std::vector<std::string> csv_names(const Table& table) {
  std::vector<std::string> names = table.csv_columns.empty() ? table.columns : table.csv_columns;
  std::map<std::string, int> times;
  for (std::size_t column = 0; column < names.size(); ++column) {
    std::string& name = names[column];
    if (name.empty()) name = "column " + std::to_string(column + 1);
    if (const int time = ++times[name]; time > 1) name += " " + std::to_string(time);
  }
  return names;
}

// A column of intervals becomes two: "NAME low", "NAME high".
void print_csv(std::ostream& out, const Table& table) {
  const std::vector<std::string> names = csv_names(table);
  std::vector<bool> has_ends;
  for (std::size_t column = 0; column < names.size(); ++column)
    has_ends.push_back(std::ranges::any_of(
        table.rows, [column](const auto& row) { return column < row.size() && row[column].raw_high; }));
  for (std::size_t column = 0; column < names.size(); ++column) {
    out << (column > 0 ? "," : "") << csv_field(names[column] + (has_ends[column] ? " low" : ""));
    if (has_ends[column]) out << "," << csv_field(names[column] + " high");
  }
  out << '\n';
  for (const auto& row : table.rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      out << (column > 0 ? "," : "") << csv_field(row[column].raw);
      if (has_ends[column]) out << "," << csv_field(row[column].raw_high.value_or(""));
    }
    out << '\n';
  }
}

}  // namespace

std::string text_of(const Report& report, Format format) {
  std::ostringstream out;
  if (format == Format::json) {
    Json document{{"schema", report.schema}};
    document.update(report.json);
    out << document.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else if (format == Format::csv) {
    if (!report.tables.empty()) print_csv(out, report.tables.front());
  } else {
    for (const std::string& line : report.heading) out << line << '\n';
    for (std::size_t index = 0; index < report.tables.size(); ++index) {
      if (index > 0 || !report.heading.empty()) out << '\n';
      print_table(out, report.tables[index]);
    }
  }
  return out.str();
}

void show(const Report& report, const OutputOptions& options) {
  const std::string text = text_of(report, options.format);
  if (!options.report_file.empty()) files::write_file_atomically(options.report_file, html_page(report));
  if (options.file.empty())
    print(text);
  else
    files::write_file_atomically(options.file, text);
}

}  // namespace dculab::present

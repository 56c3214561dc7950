#include "cli/output/output.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>

#include "cli/output/html_page.hpp"
#include "cli/output/standard_output.hpp"
#include "cli/scenario/file_options.hpp"
#include "files/output.hpp"

namespace dculab::cli {
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

void print_csv(std::ostream& out, const Table& table) {
  for (std::size_t column = 0; column < table.columns.size(); ++column)
    out << (column > 0 ? "," : "") << csv_field(table.columns[column]);
  out << '\n';
  for (const auto& row : table.rows) {
    for (std::size_t column = 0; column < row.size(); ++column)
      out << (column > 0 ? "," : "") << csv_field(row[column].raw);
    out << '\n';
  }
}

[[nodiscard]] std::string render(const Report& report, Format format) {
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

}  // namespace

Cell::Cell(std::string shown, double exact) : text(std::move(shown)), raw(exact_number(exact)) {}

void add_format_option(CLI::App& command, OutputOptions& options) {
  static const std::map<std::string, Format> formats{
      {"table", Format::table}, {"json", Format::json}, {"csv", Format::csv}};
  command
      .add_option_function<std::string>(
          "--format", [&options](const std::string& name) { options.format = formats.at(name); }, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->option_text("table|json|csv [table]");
}

void add_output_options(CLI::App& command, OutputOptions& options) {
  add_format_option(command, options);
  add_output_file(command, "--output", options.file, "Write to this file, whole or not at all");
}

void add_report_options(CLI::App& command, OutputOptions& options) {
  add_output_options(command, options);
  add_output_file(command, "--report", options.report_file, "Also write an HTML page with charts");
}

void add_warnings(Report& report, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    const std::string line = "warning: " + warning;
    if (std::ranges::find(report.heading, line) != report.heading.end()) continue;
    report.heading.push_back(line);
    report.json["warnings"].push_back(warning);
  }
}

void show(const Report& report, const OutputOptions& options) {
  const std::string text = render(report, options.format);
  if (!options.report_file.empty()) files::write_file_atomically(options.report_file, html_page(report));
  if (options.file.empty())
    print(text);
  else
    files::write_file_atomically(options.file, text);
}

std::string number(double value, int digits) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  char buffer[64];
  const double magnitude = std::abs(value);
  if (magnitude != 0 && (magnitude >= 1e6 || magnitude < 1e-3))
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
  else
    std::snprintf(buffer, sizeof buffer, "%.*f",
                  magnitude == 0 ? 0 : std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(magnitude)))),
                  value);
  return buffer;
}

Json choices_json(const std::vector<std::pair<std::string, std::string>>& choices) {
  Json json = Json::object();
  for (const auto& [key, value] : choices) json[key] = value;
  return json;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string exact_number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

std::string percent(double share, int digits) { return number(100 * share, digits) + " %"; }

std::string signed_percent(double share, int digits) {
  constexpr double kLeast = 1e-4;  // 0.01 %: less is no difference
  const double shown = std::abs(share) < kLeast ? 0 : share;
  return (shown < 0 ? "−" : "+") + percent(std::abs(shown), digits);
}

}  // namespace dculab::cli

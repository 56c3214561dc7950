#include "present/output/show.hpp"

#include <cstddef>
#include <iostream>
#include <optional>
#include <sstream>

#include "fields/printable_text.hpp"
#include "files/output.hpp"
#include "present/output/conclusion.hpp"
#include "present/output/csv_text.hpp"
#include "present/output/html_page.hpp"
#include "present/output/standard_output.hpp"
#include "present/output/table_text.hpp"

namespace dculab::present {

std::string text_of(const Report& report, Format format, std::optional<std::size_t> width) {
  std::ostringstream out;
  if (format == Format::json) {
    Json document{{"schema", report.schema}};
    document.update(report.json);
    out << document.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else if (format == Format::csv) {
    out << csv_text(csv_of(report));
  } else {
    for (const std::string& line : report.heading) out << line << '\n';
    for (std::size_t index = 0; index < report.tables.size(); ++index) {
      if (index > 0 || !report.heading.empty()) out << '\n';
      out << table_text(report.tables[index], width);
    }
    out << conclusion_text(report);
  }
  return out.str();
}

void show(const Report& report, const OutputOptions& options) {
  if (options.format == Format::csv)  // whose rows have no place for them
    for (const std::string& line : report.heading)
      if (line.starts_with("warning: ")) std::cerr << printable(line) << '\n';
  const std::string text = text_of(report, options.format, options.file.empty() ? terminal_width() : std::nullopt);
  if (!options.report_file.empty()) files::write_file_atomically(options.report_file, html_page(report));
  if (options.file.empty())
    print(text);
  else
    files::write_file_atomically(options.file, text);
}

}  // namespace dculab::present

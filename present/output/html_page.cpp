#include "present/output/html_page.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/version.hpp"

namespace dculab::present {
namespace {

// report/page.html with styles and scripts, made by cmake/DculabReport.cmake; empty in a build without npm packages.
constexpr char kTemplateText[] =
#include "report_page.inc"
    ;
constexpr std::string_view kTemplate(kTemplateText, sizeof kTemplateText - 1);
constexpr std::string_view kTitleMark = "@TITLE@";
constexpr std::string_view kDataMark = "@DATA@";
constexpr std::size_t kMostRows = 1000;  // of a table: more are neither read nor fast to show

void replace(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

[[nodiscard]] std::string escaped(std::string text) {
  for (const auto& [from, to] : {std::pair{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}}) replace(text, from, to);
  return text;
}

[[nodiscard]] Json to_json(const Table& table) {
  Json rows = Json::array();
  for (std::size_t index = 0; index < std::min(table.rows.size(), kMostRows); ++index)
    rows.push_back(table.rows[index]);
  return {{"title", table.title},
          {"columns", table.columns},
          {"rows", std::move(rows)},
          {"left_out", table.rows.size() - std::min(table.rows.size(), kMostRows)},
          {"notes", table.notes}};
}

// What is asked: the scenario's words, else the first line that the command says of it, not of its kernels.
[[nodiscard]] std::string question_of(const Report& report) {
  const auto asked = report.json.find("question");
  if (asked != report.json.end() && asked->is_string()) return *asked;
  const auto found = std::ranges::find_if_not(report.heading, [](const std::string& line) {
    return line.starts_with("kernels of ") || line.starts_with("warning: ");
  });
  return found == report.heading.end() ? "" : *found;
}

// No "<" is left that could end the script element.
[[nodiscard]] std::string data_of(const Report& report) {
  Json data{{"schema", report.schema},   {"version", version()},    {"question", question_of(report)},
            {"heading", report.heading}, {"tables", Json::array()}, {"result", report.json}};
  for (const Table& table : report.tables) data["tables"].push_back(to_json(table));
  std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  replace(text, "<", "\\u003c");
  return text;
}

// "dculab/predict/1" -> "dculab predict: what is asked".
[[nodiscard]] std::string title_of(const Report& report) {
  const std::size_t begin = report.schema.find('/') + 1;
  const std::string command = report.schema.substr(begin, report.schema.find('/', begin) - begin);
  const std::string question = question_of(report);
  return "dculab " + command + (question.empty() ? "" : ": " + question);
}

}  // namespace

bool has_html_page() { return !kTemplate.empty(); }

std::string html_page(const Report& report) {
  const std::size_t title = kTemplate.find(kTitleMark);
  const std::size_t data = kTemplate.find(kDataMark);
  std::string page(kTemplate.substr(0, title));
  page += escaped(title_of(report));
  page += kTemplate.substr(title + kTitleMark.size(), data - title - kTitleMark.size());
  page += data_of(report);
  page += kTemplate.substr(data + kDataMark.size());
  return page;
}

}  // namespace dculab::present

// An answer as it is shown: tables for people, JSON and CSV for programs.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/number_text.hpp"
#include "present/output/csv_rows.hpp"

namespace dculab::present {

using config::counted;
using config::exact_number;
using config::number;
using config::percent;
using config::signed_percent;

using Json = nlohmann::ordered_json;

using Row = std::vector<std::string>;

struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<Row> rows{};
  std::vector<std::string> notes;  // lines below the table
  // Of a table with long texts: how wide its lines are in a pipe or a file, where words can be wrapped so far. Those of
  // others are as wide as their cells.
  std::optional<std::size_t> usual_width{};
};

// What a subcommand has to say: the same facts as tables and as JSON.
struct Report {
  std::string schema;                // "dculab/predict/1"
  std::vector<std::string> heading;  // lines above the tables
  std::vector<Table> tables;
  Json json;                         // without `schema`, which is added
  std::vector<CsvAnswer> answers{};  // what of the JSON is CSV; report_of() and set_answer() know
};

// What makes the figures less than they seem: lines of the heading, and `warnings` in JSON where there are any. Each
// once.
void add_warnings(Report& report, const std::vector<std::string>& warnings);

}  // namespace dculab::present

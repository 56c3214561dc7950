// An answer as it is shown: tables for people, JSON and CSV for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/number_text.hpp"

namespace dculab::present {

using config::exact_number;
using config::number;
using config::percent;
using config::signed_percent;

using Json = nlohmann::ordered_json;

// A cell shows `text` to people and `raw` to programs; of an interval, `raw` is the lower end and `raw_high` the upper.
struct Cell {
  std::string text;
  std::string raw;
  std::optional<std::string> raw_high{};

  Cell(std::string both) : text(both), raw(std::move(both)) {}
  Cell(const char* both) : Cell(std::string(both)) {}
  Cell(std::string shown, std::string exact) : text(std::move(shown)), raw(std::move(exact)) {}
  Cell(std::string shown, double exact);
  Cell(std::string shown, double low, double high);
};

enum class Align { left, right };

struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::string> csv_columns{};  // their names in CSV; empty: the same
  std::vector<std::vector<Cell>> rows{};
  std::vector<std::string> notes;    // lines below the table; left out of CSV
  Align first_column = Align::left;  // the others are aligned right
};

// What a subcommand has to say: the same facts as tables and as JSON.
struct Report {
  std::string schema;                // "dculab/predict/1"
  std::vector<std::string> heading;  // lines above the tables
  std::vector<Table> tables;         // CSV prints the first
  Json json;                         // without `schema`, which is added
};

// What makes the figures less than they seem: lines of the heading, and `warnings` in JSON where there are any. Each
// once.
void add_warnings(Report& report, const std::vector<std::string>& warnings);

// A field of a CSV row, quoted where it must be.
[[nodiscard]] std::string csv_field(const std::string& text);

}  // namespace dculab::present

// An answer as it is shown: tables for people, JSON and CSV for programs, and how both write numbers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dculab::present {

using Json = nlohmann::ordered_json;

// A cell shows `text` to people and `raw` to programs.
struct Cell {
  std::string text;
  std::string raw;

  Cell(std::string both) : text(both), raw(std::move(both)) {}
  Cell(const char* both) : Cell(std::string(both)) {}
  Cell(std::string shown, std::string exact) : text(std::move(shown)), raw(std::move(exact)) {}
  Cell(std::string shown, double exact);
};

enum class Align { left, right };

struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
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

// A number with `digits` significant digits.
[[nodiscard]] std::string number(double value, int digits = 3);

// {"model.num_key_value_heads": "8", ...}: keys of a scenario and what they are set to.
[[nodiscard]] Json choices_json(const std::vector<std::pair<std::string, std::string>>& choices);

// A field of a CSV row, quoted where it must be.
[[nodiscard]] std::string csv_field(const std::string& text);

// All that programs need to know of a number: nine digits, no trailing zeros.
[[nodiscard]] std::string exact_number(double value);

// 0.1234 -> "12.3 %"
[[nodiscard]] std::string percent(double share, int digits = 3);

// 0.1234 -> "+12.3 %", -0.1234 -> "−12.3 %"; less than 0.01 % is no difference: "+0 %"
[[nodiscard]] std::string signed_percent(double share, int digits = 3);

}  // namespace dculab::present

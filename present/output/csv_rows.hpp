// Which rows of an answer's JSON are its CSV, and which values of a row are columns. Both are made of field lists
// (present/output/field_csv.hpp).
//
// A header is the key; of a key within an object, both with "." between: "bytes.L2". An interval is two columns,
// "interval_seconds.low" and "interval_seconds.high". A list of numbers or words is one cell, ";" between its items;
// lists of objects are in JSON only. What is absent or null is an empty cell. Keys that are data, such as names of
// memory levels, have a column where some row has them; all others always have one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dculab::present {

// What a value is to CSV.
struct CsvShape {
  enum class Kind {
    value,     // a cell
    list,      // a cell
    interval,  // two cells
    object,    // `parts`: its keys
    members,   // an object whose keys are data; `parts`: the one shape that its values have
    keyed,     // among the parts of an object: those of the object's keys that are in `keys`; `parts` as of `members`
    none       // not in CSV
  };
  Kind kind = Kind::value;
  std::string key{};  // of a part of an object
  std::vector<CsvShape> parts{};
  std::vector<std::string> keys{};
};

// From an answer, or an item of the step before, into each item of a list, or into each value of an object whose keys
// are data; these keys are a column then.
struct CsvStep {
  std::string key;
  bool is_members = false;
  std::vector<CsvShape> repeated{};  // parts of the item, which all rows within repeat
};

// Where rows are, and what a row is. Without steps the answer itself is the one row.
struct CsvRows {
  std::vector<CsvStep> steps{};
  CsvShape row{};
};

// An answer in a report's JSON. Its rows are the first of these that it has.
struct CsvAnswer {
  std::string place{};  // a JSON pointer
  std::vector<CsvRows> ways{};
};

// A step of FieldList<T>::csv_rows: "machines[machine]" has the key "machines" and repeats "machine".
struct CsvPathStep {
  std::string key;
  std::vector<std::string> repeated{};
};

// "pareto|machines[machine].points": two ways, of one step and of two.
[[nodiscard]] std::vector<std::vector<CsvPathStep>> csv_paths(std::string_view text);

}  // namespace dculab::present

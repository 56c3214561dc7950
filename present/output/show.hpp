// Where an answer goes: to the terminal or a file, as a table, JSON or CSV, and to a page with charts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "present/output/report.hpp"

namespace dculab::present {

enum class Format { table, json, csv };

// `--format` and `--output` of every subcommand.
struct OutputOptions {
  Format format = Format::table;
  std::string file;         // empty: standard output
  std::string report_file;  // the page of `--report`; empty: none
};

// The report as it is printed: of tables the lines, no wider than `width` columns where it is given; of JSON the
// document; of CSV the rows.
[[nodiscard]] std::string text_of(const Report& report, Format format, std::optional<std::size_t> width = {});

// Prints or writes the report, whole or not at all.
void show(const Report& report, const OutputOptions& options);

}  // namespace dculab::present

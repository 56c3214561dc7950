// --format, --output and --report.
#pragma once

#include "present/output/show.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

void add_output_options(CLI::App& command, present::OutputOptions& options);

// Those and `--report`, of subcommands whose result has charts.
void add_report_options(CLI::App& command, present::OutputOptions& options);

// `--format` alone: where --output names what the subcommand makes.
void add_format_option(CLI::App& command, present::OutputOptions& options);

}  // namespace dculab::cli

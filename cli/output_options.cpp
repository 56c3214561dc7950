#include "cli/output_options.hpp"

#include <CLI/CLI.hpp>
#include <map>

#include "cli/scenario/file_options.hpp"
#include "core/error.hpp"
#include "present/output/html_page.hpp"
#include "study/scenario/named_files.hpp"

namespace dculab::cli {
namespace {

// Why a build has no page to fill; empty when it has one.
[[nodiscard]] std::string why_no_page(const std::string&) {
  if (present::has_html_page()) return "";
  return "this build has no page of charts (npm packages were missing); run scripts/install-packages and build again";
}

// Standard output is for one thing.
void refuse_shared_output(const present::OutputOptions& options) {
  const std::string other = study::option_to_standard_output();
  if (options.file.empty() && !other.empty())
    throw InputError(other,
                     "standard output has the answer already; name a file here, or --output FILE for the answer");
}

}  // namespace

void add_format_option(CLI::App& command, present::OutputOptions& options) {
  static const std::map<std::string, present::Format> formats{
      {"table", present::Format::table}, {"json", present::Format::json}, {"csv", present::Format::csv}};
  command
      .add_option_function<std::string>(
          "--format", [&options](const std::string& name) { options.format = formats.at(name); }, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->option_text("table|json|csv [table]");
  command.parse_complete_callback([&options] { refuse_shared_output(options); });
}

void add_output_options(CLI::App& command, present::OutputOptions& options) {
  add_format_option(command, options);
  add_output_file(command, "--output", options.file, "Write to this file, whole or not at all");
}

void add_report_options(CLI::App& command, present::OutputOptions& options) {
  add_output_options(command, options);
  add_output_file(command, "--report", options.report_file, "Also write an HTML page with charts");
  command.get_option("--report")->check(CLI::Validator(why_no_page, ""));
}

}  // namespace dculab::cli

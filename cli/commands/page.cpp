// `dculab page`: the simulator as a page that opens in a browser, as it was built.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/scenario/file_options.hpp"
#include "core/error.hpp"
#include "files/input.hpp"
#include "files/output.hpp"
#include "present/output/standard_output.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

// Where the page goes to standard output or a pipe, nothing else may.
void say_written(const std::string& output) {
  std::error_code ignored;
  if (output == files::kStandardOutput || !std::filesystem::is_regular_file(output, ignored)) return;
  present::print("wrote " + output + "; open it in a browser, for example with: xdg-open " + output + "\n");
}

void copy_page(const std::string& output) {
  const auto page = study::find_lab_page();
  if (!page)
    throw InputError(
        "this build has no page; build it with `scripts/install-packages --web && cmake --workflow --preset web`, or "
        "take lab.html from a release");
  files::write_file_atomically(output, files::read_text(page->string(), files::kLargestText));
  say_written(output);
}

}  // namespace

void add_page(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("page", "Write the simulator with sliders and charts as one file for a browser");
  auto output = std::make_shared<std::string>("lab.html");
  add_output_file(*command, "--output", *output, "Write the page here; default lab.html");
  add_examples(*command, {"dculab page --output lab.html"});
  command->callback([output] { copy_page(*output); });
}

}  // namespace dculab::cli

// `dculab help COMMAND`: as COMMAND --help.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/usage_errors.hpp"
#include "core/error.hpp"
#include "present/output/standard_output.hpp"

namespace dculab::cli {
namespace {

void print_help(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const CLI::App* below = find_command(*command, word);
    if (below == nullptr) throw InputError(unknown_command(*command, word));
    command = below;
  }
  if (command == &app) return present::print(overview(app));
  present::print(command->help(full_name(*command->get_parent())));
}

}  // namespace

void add_help(CLI::App& app) {
  CLI::App* command = app.add_subcommand("help", "Show the options of a command, and an example");
  auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("command", *words, "The command, such as `tables intensity`; without it an overview");
  add_examples(*command, {"dculab help tables intensity"});
  command->callback([&app, words] { print_help(app, *words); });
}

}  // namespace dculab::cli

// `dculab manual`: the manual pages, printed or written to a folder.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command_words.hpp"
#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "core/error.hpp"
#include "core/version.hpp"
#include "files/output.hpp"
#include "present/command_line/manual_page.hpp"
#include "present/output/standard_output.hpp"

namespace dculab::cli {
namespace {

struct ManualChoices {
  std::vector<std::string> command;
  std::string folder;
};

void show_page(const std::vector<present::ManualPage>& pages, const std::vector<std::string>& command) {
  std::string name = "dculab";
  for (const std::string& word : command) name += "-" + word;
  const auto page = std::ranges::find(pages, name, &present::ManualPage::name);
  if (page == pages.end()) throw InputError("there is no command of the page " + name + "; see dculab --help");
  present::print(page->text);
}

void write_pages(const std::vector<present::ManualPage>& pages, const std::filesystem::path& folder) {
  for (const present::ManualPage& page : pages)
    files::write_file_atomically((folder / (page.name + ".1")).string(), page.text);
}

}  // namespace

void add_manual(CLI::App& app) {
  CLI::App* command = app.add_subcommand("manual", "Print a manual page; `dculab manual predict | man -l -` shows it");
  auto choices = std::make_shared<ManualChoices>();
  command->add_option("command", choices->command, "The command, as `tables intensity`; without it, the program's page")
      ->option_text("COMMAND ...");
  command->add_option("--folder", choices->folder, "Write the pages of all commands into this folder")
      ->option_text("FOLDER")
      ->check(CLI::ExistingDirectory);
  add_examples(*command, {"dculab manual tables intensity"});
  command->callback([choices, command] {
    const auto pages = present::manual_pages(program_words(*command), version());
    if (choices->folder.empty())
      show_page(pages, choices->command);
    else
      write_pages(pages, choices->folder);
  });
}

}  // namespace dculab::cli

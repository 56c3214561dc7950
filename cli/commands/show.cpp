// `dculab show`: every effective value of a machine, a stack, a model or a scenario, and where it came from.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/file_options.hpp"
#include "present/values/shown_report.hpp"

namespace dculab::cli {
namespace {

struct ShowChoices {
  std::string what;
  std::vector<std::string> set;
  present::OutputOptions output;
};

}  // namespace

void add_show(CLI::App& app) {
  CLI::App* command = app.add_subcommand("show", "Show every effective value of a machine, stack, model or scenario");
  auto choices = std::make_shared<ShowChoices>();
  reads(command->add_option("what", choices->what,
                            "A file, a folder, or the name of a shipped machine, stack, model or scenario"),
        study::try_find_shown)
      ->required();
  command->add_option("--set", choices->set, "key=value: override a scenario's key")->option_text("KEY=VALUE ...");
  add_output_options(*command, choices->output);
  add_examples(*command, {"dculab show k100-ai"});
  command->callback([choices] {
    present::show(present::shown_report(study::find_shown(choices->what, choices->set)), choices->output);
  });
}

}  // namespace dculab::cli

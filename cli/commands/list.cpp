// `dculab list`: what is shipped, to choose among.
#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "present/values/shipped_report.hpp"

namespace dculab::cli {
namespace {

struct ListChoices {
  std::string kind;
  present::OutputOptions output;
};

[[nodiscard]] std::optional<study::ShippedKind> kind_of(const std::string& word) {
  static const std::map<std::string, study::ShippedKind> kinds{{"models", study::ShippedKind::models},
                                                               {"machines", study::ShippedKind::machines},
                                                               {"stacks", study::ShippedKind::stacks},
                                                               {"scenarios", study::ShippedKind::scenarios}};
  return word.empty() ? std::nullopt : std::optional(kinds.at(word));
}

}  // namespace

void add_list(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "List the models, machines, stacks and scenarios that are shipped");
  auto choices = std::make_shared<ListChoices>();
  command->add_option("kind", choices->kind, "models, machines, stacks or scenarios; without it all")
      ->check(CLI::IsMember({"models", "machines", "stacks", "scenarios"}))
      ->option_text("KIND");
  add_output_options(*command, choices->output);
  add_examples(*command, {"dculab list machines"});
  command->callback([choices] {
    present::show(present::shipped_report(study::find_shipped(kind_of(choices->kind))), choices->output);
  });
}

}  // namespace dculab::cli

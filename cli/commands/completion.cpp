// `dculab completion`: what makes a shell complete the program's commands, options and values.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/command_words.hpp"
#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "present/command_line/completion.hpp"
#include "present/output/standard_output.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

[[nodiscard]] std::vector<std::string> names_of(const std::string& kind) {
  std::vector<std::string> names;
  const auto add = [&](const char* of, const std::vector<std::string>& found) {
    if (kind == of || kind == "any") names.insert(names.end(), found.begin(), found.end());
  };
  add("model", study::model_names());
  add("machine", study::machine_names());
  add("scenario", study::scenario_names());
  add("stack", study::stack_names());
  return names;
}

[[nodiscard]] std::string script_for(const std::string& shell, const present::CommandWords& program) {
  if (shell == "bash") return present::bash_completion(program);
  return shell == "zsh" ? present::zsh_completion(program) : present::fish_completion(program);
}

void print_names(const std::string& kind) {
  std::string lines;
  for (const std::string& name : names_of(kind)) lines += name + "\n";
  present::print(lines);
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completion", "Print what makes a shell complete commands and options");
  struct Choices {
    std::string shell, names;
  };
  auto choices = std::make_shared<Choices>();
  CLI::Option* shell = command->add_option("shell", choices->shell, "The shell: source <(dculab completion bash)")
                           ->option_text("bash|zsh|fish")
                           ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command
      ->add_option("--names", choices->names,
                   "Print the names of this kind, which the scripts ask for while they complete")
      ->option_text("model|machine|scenario|stack|any")
      ->check(CLI::IsMember({"model", "machine", "scenario", "stack", "any"}))
      ->excludes(shell);
  add_examples(*command, {"dculab completion bash >dculab.bash"});
  command->callback([choices, command] {
    if (!choices->names.empty()) return print_names(choices->names);
    if (choices->shell.empty()) throw CLI::RequiredError("bash, zsh or fish");
    present::print(script_for(choices->shell, program_words(*command)));
  });
}

}  // namespace dculab::cli

#include <string_view>

#include "present/command_line/completion.hpp"

namespace dculab::present {
namespace {

// Inside '...' of a specification, where [ ] and : mean something.
[[nodiscard]] std::string in_specification(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    if (letter == '\'')
      safe += "'\\''";
    else if (std::string_view("[]:\\").find(letter) != std::string_view::npos)
      safe += std::string("\\") + letter;
    else
      safe += letter;
  }
  return safe;
}

// ":what it is:what completes it", behind an option or an argument
[[nodiscard]] std::string value_specification(const OptionWords& option, const std::string& names) {
  std::string action = " ";
  if (option.values == Values::words) {
    action = "(";
    for (const std::string& word : option.words) action += (action.size() == 1 ? "" : " ") + word;
    action += ")";
  } else if (option.values == Values::files) {
    action = "_files";
  } else if (option.values == Values::names) {
    action = "{" + names + " " + option.kind + "}";
  }
  return ":" + in_specification(option.placeholder.empty() ? "value" : option.placeholder) + ":" + action;
}

void add_arguments(const CommandWords& command, const std::string& names, std::string& script) {
  bool has_argument = false;
  script += command.commands.empty() ? "  _arguments -s" : "  _arguments -s -C";
  for (const OptionWords& option : command.options) {
    const std::string help = "[" + in_specification(option.help) + "]";
    for (const std::string& flag : option.flags)
      script +=
          " \\\n    '*" + flag + help + (option.values == Values::none ? "" : value_specification(option, names)) + "'";
    if (!option.flags.empty() || has_argument) continue;
    script += " \\\n    '*" + value_specification(option, names) + "'";
    has_argument = true;
  }
}

// `names`: the function that asks the program for names.
void add_function(const std::string& function, const CommandWords& command, const std::string& names,
                  std::string& script) {
  for (const CommandWords& below : command.commands) add_function(function + "_" + below.name, below, names, script);
  script += function + "() {\n";
  if (command.commands.empty()) {
    add_arguments(command, names, script);
    script += "\n}\n";
    return;
  }
  script += "  local context state line\n  local -A opt_args\n  local -a commands=(\n";
  for (const CommandWords& below : command.commands)
    script += "    '" + below.name + ":" + in_specification(below.help) + "'\n";
  script += "  )\n";
  add_arguments(command, names, script);
  script +=
      " '1: :->command' '*:: :->rest' && return\n  case $state in\n    command) _describe command commands ;;\n"
      "    rest) case $line[1] in\n";
  for (const CommandWords& below : command.commands)
    script += "      " + below.name + ") " + function + "_" + below.name + " ;;\n";
  script += "    esac ;;\n  esac\n}\n";
}

}  // namespace

std::string zsh_completion(const CommandWords& program) {
  const std::string function = "_" + program.name, names = function + "_names";
  std::string script = "#compdef " + program.name + "\n# Completes " + program.name + " in zsh. Written by `" +
                       program.name + " completion zsh`.\n" + names + "() {\n  local -a names=(${(f)\"$(" +
                       program.name + " completion --names $1 2>/dev/null)\"})\n  compadd -a names\n  _files\n}\n";
  add_function(function, program, names, script);
  // As a file of $fpath it is the function; sourced, it registers it.
  return script + "if [ \"$funcstack[1]\" = " + function + " ]; then " + function + " \"$@\"; else compdef " +
         function + " " + program.name + "; fi\n";
}

}  // namespace dculab::present

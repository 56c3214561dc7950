#include "present/command_line/completion.hpp"

namespace dculab::present {
namespace {

// One `case` for all commands: what stood before the word decides what it may be.
struct BashCases {
  std::string commands;  // "dculab predict")
  std::string values;    // "dculab predict --phase")
  std::string words;     // "dculab predict") words="--model --machine"
};

[[nodiscard]] std::string value_action(const OptionWords& option) {
  if (option.values == Values::words) {
    std::string words;
    for (const std::string& word : option.words) words += (words.empty() ? "" : " ") + word;
    return "words='" + words + "'";
  }
  if (option.values == Values::files) return "files=yes";
  if (option.values == Values::names)
    return "files=yes words=$(\"${COMP_WORDS[0]}\" completion --names " + option.kind + " 2>/dev/null)";
  return ":";
}

void add_bash_option(const std::string& path, const OptionWords& option, std::string& words, BashCases& cases) {
  for (const std::string& flag : option.flags) words += " " + flag;
  if (option.values == Values::none || option.flags.empty()) return;
  std::string pattern;
  for (const std::string& flag : option.flags)
    pattern += (pattern.empty() ? "" : "|") + ("'" + path + " " + flag + "'");
  cases.values += "    " + pattern + ") " + value_action(option) + " ;;\n";
}

void add_bash_command(const std::string& path, const CommandWords& command, BashCases& cases) {
  std::string words, arguments;
  for (const CommandWords& below : command.commands) words += " " + below.name;
  for (const OptionWords& option : command.options) {
    add_bash_option(path, option, words, cases);
    if (option.flags.empty() && arguments.empty()) arguments = value_action(option);
  }
  cases.words += "    '" + path + "')\n      case $current in\n        -*) words='" + words + "' ;;\n        *) " +
                 (arguments.empty() ? "words='" + words + "'" : arguments) + " ;;\n      esac ;;\n";
  for (const CommandWords& below : command.commands) {
    const std::string longer = path + " " + below.name;
    cases.commands += (cases.commands.empty() ? "'" : "|'") + longer + "'";
    add_bash_command(longer, below, cases);
  }
}

}  // namespace

std::string bash_completion(const CommandWords& program) {
  BashCases cases;
  add_bash_command(program.name, program, cases);
  const std::string function = "_" + program.name;
  return "# Completes " + program.name + " in bash. Written by `" + program.name + " completion bash`.\n" + function +
         "() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=" +
         program.name +
         " word words= files=\n"
         "  if [ \"$current\" = = ]; then current=\n"  // of --phase=decode
         "  elif [ \"$previous\" = = ]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case \"$command $word\" in\n      " +
         cases.commands +
         ") command=\"$command $word\" ;;\n    esac\n  done\n"
         "  case \"$command $previous\" in\n" +
         cases.values + "    *) case $command in\n" + cases.words +
         "    esac ;;\n  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  if [ -n \"$files\" ]; then compopt -o filenames 2>/dev/null; "
         "COMPREPLY+=($(compgen -f -- \"$current\")); fi\n"
         "}\n"
         "complete -F " +
         function + " " + program.name + "\n";
}

}  // namespace dculab::present

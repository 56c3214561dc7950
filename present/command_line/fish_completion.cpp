#include "present/command_line/completion.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string fish_quoted(const std::string& text) {
  std::string safe = "'";
  for (const char letter : text)
    safe += letter == '\'' || letter == '\\' ? std::string("\\") + letter : std::string(1, letter);
  return safe + "'";
}

[[nodiscard]] std::string value_choices(const OptionWords& option, const std::string& program) {
  if (option.values == Values::words) {
    std::string words;
    for (const std::string& word : option.words) words += (words.empty() ? "" : " ") + word;
    return " -f -a " + fish_quoted(words);
  }
  if (option.values == Values::files) return " -F";
  if (option.values == Values::names)
    return " -F -a " + fish_quoted("(" + program + " completion --names " + option.kind + ")");
  return " -f";
}

void add_fish_option(const OptionWords& option, const std::string& begin, const std::string& program,
                     std::string& script) {
  script += begin;
  for (const std::string& flag : option.flags)
    script += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
  if (!option.flags.empty() && option.values != Values::none) script += " -r";
  if (option.values != Values::none) script += value_choices(option, program);
  script += " -d " + fish_quoted(option.help) + "\n";
}

// `path`: the commands above and this one, without the program.
void add_fish_command(const CommandWords& command, const std::string& path, const std::string& program,
                      std::string& script) {
  const std::string here = "__" + program + "_is" + path;
  const std::string begin = "complete -c " + program + " -n " + fish_quoted(here);
  for (const CommandWords& below : command.commands)
    script += begin + " -f -a " + below.name + " -d " + fish_quoted(below.help) + "\n";
  for (const OptionWords& option : command.options) add_fish_option(option, begin, program, script);
  for (const CommandWords& below : command.commands) add_fish_command(below, path + " " + below.name, program, script);
}

void list_commands(const CommandWords& command, const std::string& path, std::string& list) {
  for (const CommandWords& below : command.commands) {
    list += " " + fish_quoted(path + below.name);
    list_commands(below, path + below.name + " ", list);
  }
}

}  // namespace

std::string fish_completion(const CommandWords& program) {
  std::string commands;
  list_commands(program, "", commands);
  std::string script = "# Completes " + program.name + " in fish. Written by `" + program.name +
                       " completion fish`.\n"
                       "# Whether the words before the cursor name this command, and none below it.\n"
                       "function __" +
                       program.name +
                       "_is\n"
                       "  set -l path\n"
                       "  for word in (commandline -opc)[2..-1]\n"
                       "    if contains -- (string join -- ' ' $path $word)" +
                       commands +
                       "\n      set -a path $word\n    end\n  end\n"
                       "  test \"$path\" = \"$argv\"\nend\n"
                       "complete -c " +
                       program.name + " -f\n";
  add_fish_command(program, "", program.name, script);
  return script;
}

}  // namespace dculab::present

#include "present/command_line/manual_page.hpp"

namespace dculab::present {
namespace {

// Text that roff takes as it is: "-" is a minus, and no line begins with a request.
[[nodiscard]] std::string roff(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    const bool begins_line = safe.empty() || safe.back() == '\n';
    if (begins_line && (letter == '.' || letter == '\'')) safe += "\\&";
    if (letter == '\\')
      safe += "\\e";
    else if (letter == '-')
      safe += "\\-";
    else
      safe += letter;
  }
  return safe;
}

[[nodiscard]] std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
[[nodiscard]] std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

[[nodiscard]] std::string page_name(const std::string& path) {
  std::string name = path;
  for (char& letter : name)
    if (letter == ' ') letter = '-';
  return name;
}

void add_synopsis(const CommandWords& command, const std::string& path, std::string& page) {
  page += ".SH SYNOPSIS\n" + bold(path);
  if (!command.commands.empty()) page += " " + italic("COMMAND");
  page += " [" + italic("OPTIONS") + "]";
  for (const OptionWords& option : command.options) {
    if (!option.flags.empty()) continue;
    const std::string placeholder = italic(option.placeholder.empty() ? "VALUE" : option.placeholder);
    page += " " + (option.is_required ? placeholder : "[" + placeholder + "]");
  }
  page += "\n";
}

void add_option_entry(const OptionWords& option, std::string& page) {
  page += ".TP\n";
  std::string heading;
  for (const std::string& flag : option.flags) heading += (heading.empty() ? "" : ", ") + bold(flag);
  if (!option.placeholder.empty()) heading += (heading.empty() ? "" : " ") + italic(option.placeholder);
  std::string words;
  for (const std::string& word : option.words) words += (words.empty() ? "" : ", ") + word;
  page += heading + "\n" + roff(option.help);
  if (!words.empty() && option.placeholder.find(option.words.front()) == std::string::npos &&
      option.help.find(option.words.front()) == std::string::npos)
    page += " (" + roff(words) + ")";
  page += option.is_required ? " (required)\n" : "\n";
}

void add_list_of_commands(const CommandWords& command, const std::string& path, std::string& page) {
  if (command.commands.empty()) return;
  page += ".SH COMMANDS\n";
  for (const CommandWords& below : command.commands)
    page += ".TP\n" + bold(page_name(path + " " + below.name)) + "(1)\n" + roff(below.help) + "\n";
}

// What all commands have in common.
constexpr const char* kEnd =
    ".SH EXIT STATUS\n"
    ".TP\n0\nDone.\n"
    ".TP\n1\nThe program or a device failed.\n"
    ".TP\n2\nA mistake in options or files, or something that the system refused; one line says what.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n.B DCULAB_DATA\n"
    "A folder with hwmodels, stacks and scenarios that are found before those of the working folder and the "
    "installed ones.\n";

[[nodiscard]] std::string page_text(const CommandWords& command, const std::string& path, const std::string& above,
                                    const std::string& version) {
  const std::string name = page_name(path);
  std::string capitals = name;
  for (char& letter : capitals)
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  std::string page = ".TH \"" + roff(capitals) + "\" 1 \"\" \"" + roff(version) + "\" \"User Commands\"\n.SH NAME\n" +
                     roff(name) + " \\- " + roff(command.help) + "\n";
  add_synopsis(command, path, page);
  page += ".SH OPTIONS\n";
  for (const OptionWords& option : command.options) add_option_entry(option, page);
  add_list_of_commands(command, path, page);
  page += kEnd;
  if (!above.empty()) page += ".SH SEE ALSO\n" + bold(page_name(above)) + "(1)\n";
  return page;
}

void add_pages(const CommandWords& command, const std::string& above, const std::string& version,
               std::vector<ManualPage>& pages) {
  const std::string path = above.empty() ? command.name : above + " " + command.name;
  pages.push_back({page_name(path), page_text(command, path, above, version)});
  for (const CommandWords& below : command.commands) add_pages(below, path, version, pages);
}

}  // namespace

std::vector<ManualPage> manual_pages(const CommandWords& program, const std::string& version) {
  std::vector<ManualPage> pages;
  add_pages(program, "", program.name + " " + version, pages);
  return pages;
}

}  // namespace dculab::present

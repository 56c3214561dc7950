#include "cli/command_words.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "cli/scenario/file_options.hpp"

namespace dculab::cli {
namespace {

using present::CommandWords;
using present::OptionWords;
using present::Values;

// "a", "b" of "a|b [a]"; nothing of what names no words: "FILE|FOLDER", "mean".
[[nodiscard]] std::vector<std::string> split_words(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto is_word = [](const std::string& word) {
    return !word.empty() && std::ranges::none_of(word, [](char each) { return each >= 'A' && each <= 'Z'; });
  };
  if (words.size() < 2 || !std::ranges::all_of(words, is_word)) words.clear();
  return words;
}

// The words that an option may be: of CLI::IsMember, or of the text that stands for its value in help.
[[nodiscard]] std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.rfind('}');
  if (open != std::string::npos && close != std::string::npos && open < close)
    return split_words(std::string_view(type).substr(open + 1, close - open - 1), ',');
  return split_words(option.get_option_text().substr(0, option.get_option_text().find(' ')), '|');
}

[[nodiscard]] bool has_validator(CLI::Option& option, const char* name) {
  try {
    return option.get_validator(name) != nullptr;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

void find_values(CLI::Option& option, OptionWords& words) {
  if (option.get_items_expected_max() == 0) {
    words.values = Values::none;
    return;
  }
  words.words = words_of(option);
  if (!words.words.empty()) words.values = Values::words;
  if (has_validator(option, "file")) words.values = Values::files;
  const auto is_named = [&](const char* kind) { return has_validator(option, kind) || option.check_lname(kind); };
  const auto* const kind = std::ranges::find_if(kNamedKinds, is_named);
  if (kind == kNamedKinds.end() && !has_validator(option, "any")) return;
  words.values = Values::names;
  words.kind = kind == kNamedKinds.end() ? "any" : *kind;
}

[[nodiscard]] OptionWords option_words(CLI::Option& option) {
  OptionWords words{
      .flags = {}, .placeholder = "", .help = option.get_description(), .is_required = option.get_required()};
  for (const std::string& name : option.get_lnames()) words.flags.push_back("--" + name);
  for (const std::string& name : option.get_snames()) words.flags.push_back("-" + name);
  find_values(option, words);
  if (words.values == Values::none) return words;
  words.placeholder = option.get_option_text();
  if (!words.placeholder.empty()) return words;
  for (const std::string& word : words.words) words.placeholder += (words.placeholder.empty() ? "" : "|") + word;
  if (words.placeholder.empty())
    words.placeholder = words.flags.empty() ? option.get_single_name() : option.get_type_name();
  return words;
}

void add_options(CLI::App& app, CommandWords& words) {
  for (CLI::Option* option : app.get_options({}))
    if (!option->get_group().empty()) words.options.push_back(option_words(*option));
}

// Also those of groups of options, which CLI11 keeps as commands without a name.
[[nodiscard]] CommandWords command_words(CLI::App& app) {
  CommandWords words{app.get_name(), app.get_description()};
  std::ranges::replace(words.help, '\n', ' ');
  add_options(app, words);
  for (CLI::App* below : app.get_subcommands({}))
    if (below->get_name().empty())
      add_options(*below, words);
    else if (!below->get_group().empty())
      words.commands.push_back(command_words(*below));
  return words;
}

}  // namespace

CommandWords program_words(CLI::App& app) {
  return app.get_parent() == nullptr ? command_words(app) : program_words(*app.get_parent());
}

}  // namespace dculab::cli

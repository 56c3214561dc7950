// What is wrong with a command line, in one line: what, in which command, and what may have been meant.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace dculab::cli {

// The command that was named, down to `tables intensity`.
[[nodiscard]] const CLI::App& named_command(const CLI::App& app);

// "dculab tables intensity"
[[nodiscard]] std::string full_name(const CLI::App& command);

// The command of that name below `app`, or null; and what is said where there is none.
[[nodiscard]] const CLI::App* find_command(const CLI::App& app, const std::string& name);
[[nodiscard]] std::string unknown_command(const CLI::App& app, const std::string& name);

// Whether what was parsed names a command that there is not, perhaps beside --help.
[[nodiscard]] bool names_unknown_command(const CLI::App& app);

[[nodiscard]] std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace dculab::cli

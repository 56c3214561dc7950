// Options that name files and folders. A command may not write a file that it reads, and two options may not write one
// file: such an option is refused while the command line is read, before any work (study/scenario/named_files.hpp).
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dculab::cli {

// The file or folder that a value of an option means, where names of what is shipped are values too.
using FindFile = std::optional<std::filesystem::path> (*)(const std::string&);

// Completions find the kind of a file option by its validator of that name: one of these, or "file", or "any" of these.
inline constexpr std::array kNamedKinds{"model", "machine", "scenario", "stack"};

// Each value of the option is a file, or a model folder, that the command reads; `-` is standard input.
CLI::Option* reads(CLI::Option* option, FindFile find = nullptr);

// The value of the option is a file or folder that the command writes, and never standard output.
CLI::Option* writes(CLI::Option* option);

// An option that names a file to write; `-` is standard output. One that cannot be written is refused before the work
// whose result it is for.
void add_output_file(CLI::App& command, const std::string& option, std::string& file, const std::string& help);

}  // namespace dculab::cli

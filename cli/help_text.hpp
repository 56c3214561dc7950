// What --help prints: options with their defaults, and examples that work (tests/cli/help_test.cpp runs them).
#pragma once

#include <initializer_list>
#include <string>

namespace CLI {
class App;
}

namespace dculab::cli {

inline constexpr const char* kPurpose =
    "dculab predicts how fast an LLM runs on a Hygon DCU or another GPU, what limits it, and which settings to\n"
    "serve it with. Predictions take a second and need no GPU.";

// Of the program and of every command that is added to it from now on.
void set_help_text(CLI::App& app);

// Command lines, each as it is typed.
void add_examples(CLI::App& command, std::initializer_list<const char*> lines);

// What `dculab` alone prints: what it is for, where to begin, and the commands by group.
[[nodiscard]] std::string overview(const CLI::App& app);

}  // namespace dculab::cli

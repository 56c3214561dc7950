// Scripts by which shells complete the program's commands, options and values. Names of shipped models, machines,
// stacks and scenarios are asked of the program when they are completed (`dculab completion --names KIND`).
#pragma once

#include <string>

#include "present/command_line/command_words.hpp"

namespace dculab::present {

[[nodiscard]] std::string bash_completion(const CommandWords& program);
[[nodiscard]] std::string zsh_completion(const CommandWords& program);
[[nodiscard]] std::string fish_completion(const CommandWords& program);

}  // namespace dculab::present

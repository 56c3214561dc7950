// Manual pages of the program and its commands, as `man` reads them.
#pragma once

#include <string>
#include <vector>

#include "present/command_line/command_words.hpp"

namespace dculab::present {

struct ManualPage {
  std::string name;  // "dculab-tables-intensity"
  std::string text;  // roff
};

// A page of the program, then one of each command.
[[nodiscard]] std::vector<ManualPage> manual_pages(const CommandWords& program, const std::string& version);

}  // namespace dculab::present

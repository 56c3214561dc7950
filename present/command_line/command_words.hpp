// The program's commands and options as data: what completions and manual pages are written from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dculab::present {

// What the values of an option are, as far as a shell can complete them.
enum class Values : std::uint8_t {
  none,   // the option takes none
  free,   // a number or a text
  words,  // some of OptionWords::words
  files,
  names,  // of what is shipped, of OptionWords::kind; files too
};

struct OptionWords {
  std::vector<std::string> flags;  // "--batch", "-n"; none: an argument by its place
  std::string placeholder;         // what stands for the value in help: "INT", "FILE"
  std::string help;
  Values values = Values::free;
  std::vector<std::string> words{};
  std::string kind{};  // "model", "machine", "scenario", "stack"
  bool is_required = false;
};

struct CommandWords {
  std::string name;
  std::string help;
  std::vector<OptionWords> options{};
  std::vector<CommandWords> commands{};
};

}  // namespace dculab::present

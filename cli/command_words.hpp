// The program's commands and options, as CLI11 knows them, for completions and manual pages.
#pragma once

#include "present/command_line/command_words.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

// The whole program, whichever of its commands `app` is.
[[nodiscard]] present::CommandWords program_words(CLI::App& app);

}  // namespace dculab::cli

// What a file, a folder or a name stands for: a machine, a stack, a model or a scenario, as it takes effect.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/engine_options.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/hardware/stack.hpp"

namespace dculab::study {

struct ShownMachine {
  std::filesystem::path file;
  sim::Machine machine;
};

struct ShownStack {
  std::filesystem::path file;
  sim::Stack stack;
};

struct ShownModel {
  std::filesystem::path folder;
  ModelShape model;
};

struct ShownScenario {
  std::filesystem::path file;
  config::Scenario scenario;
  ModelShape model;
  EngineOptions options;  // on the first machine, by the stack that runs there
};

using Shown = std::variant<ShownMachine, ShownStack, ShownModel, ShownScenario>;

// The file or folder that a name of what is shipped means; nothing where there is none.
[[nodiscard]] std::optional<std::filesystem::path> try_find_shown(const std::string& name);

// A file says by its schema what it is, a folder is a model. `set`: key=value, of a scenario's keys or a machine's
// figures ("machine.clock=1550 MHz"). Throws InputError where nothing is called so, or is not changed so.
[[nodiscard]] Shown find_shown(const std::string& what, const std::vector<std::string>& set);

}  // namespace dculab::study

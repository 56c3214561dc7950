// How the engine of this machine is opened and what it caches, by the words of `dculab run`: of every command that
// generates text.
#pragma once

#include <string>

#include "cli/scenario/engine_choices.hpp"
#include "cli/scenario/speculation_choices.hpp"
#include "engine/generate/open_model.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

struct GeneratorChoices {
  engine::GeneratorOptions generator{};  // what has no words below
  std::string kv_retention = "all";
  std::string device = "cpu";
  std::string kv_cache_dtype = "f16";
  std::string activation_dtype = "f16";
  std::string activations = "exact";
  std::string kv_cache_memory;
  std::string swap_space;
  std::string prefix_eviction = "lru";
  SkipChoices skip;
  SpeculationChoices speculation;
};

void add_generator_options(CLI::App& command, GeneratorChoices& choices);

// Throws InputError for figures that do nothing beside the others, and for what does not go together.
[[nodiscard]] engine::GeneratorOptions generator_options(const CLI::App& command, const GeneratorChoices& choices);

}  // namespace dculab::cli

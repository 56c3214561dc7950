// The options of a model that processes of this machine share, with vLLM's names.
#pragma once

#include "engine/parallel/division.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

// --tensor-parallel-size and --enable-expert-parallel.
void add_division_options(CLI::App& command, engine::Division& division);

}  // namespace dculab::cli

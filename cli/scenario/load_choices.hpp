// Options that ask about requests without a scenario file: --model, --machine, --requests-per-second ...
#pragma once

#include "study/scenario/load_question.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

// All of LoadQuestion.
void add_load_choices(CLI::App& command, study::LoadQuestion& question);

}  // namespace dculab::cli

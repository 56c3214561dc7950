// Scenarios whose requests are served: how they are read, and what they may ask.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "study/scenario/load_question.hpp"

namespace dculab::study {

// Throws InputError where the scenario has no requests, or asks about them what no simulation answers.
void refuse_unserved(const config::Scenario& scenario);

// Throws InputError for what `recommend` does not answer. Axes that it decides need not be swept; of any other there is
// one value.
void refuse_unrecommended(const config::Scenario& scenario);

// A scenario by name or file with the question's changes; "": the question alone. Throws InputError, also where an
// option writes what the scenario reads.
[[nodiscard]] config::Scenario read_with(const std::string& name, const LoadQuestion& question);

// The same. Throws InputError where there are no requests, or what belongs to other commands.
[[nodiscard]] config::Scenario read_serving_scenario(const std::string& name, const LoadQuestion& question);

// "requests_per_second 20, block_size 16"
[[nodiscard]] std::string choices_text(const config::SweepPoint& point);

// Throws InputError, with `instead`, where the sweep changes the machine: for what runs or prices on given ones only.
void refuse_machine_axes(const config::Scenario& scenario, const std::string& instead);

}  // namespace dculab::study

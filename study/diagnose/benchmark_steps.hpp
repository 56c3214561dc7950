// Results of benchmark tools as times of single steps.
#pragma once

#include "study/diagnose/measured_step.hpp"

namespace dculab::study {

// Adds the steps of the question's files, and fills in what the question leaves out of model, stack and formats. All
// files must be of one model and one server. Throws InputError, which names the file.
void add_benchmark_steps(DiagnosisQuestion& question, Phase phase, Measurements& found);

}  // namespace dculab::study

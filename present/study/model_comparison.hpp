// A sweep over models: what each needs, how fast it is, and from which batch another is faster.
#pragma once

#include <string>

#include "present/output/report.hpp"
#include "study/decide/step_study.hpp"

namespace dculab::present {

// Adds, for each point of the other axes but batch and block size, a table of the models at their best block sizes,
// and as notes the batches at which they change places. `machine`: its name.
void add_model_comparison(const study::SweptModels& models, const std::string& machine, Report& report);

}  // namespace dculab::present

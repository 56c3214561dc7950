// A sweep over models: what each needs, how fast it is, and from which batch another is faster.
#pragma once

#include <vector>

#include "present/output/report.hpp"
#include "study/decide/compared_models.hpp"

namespace dculab::present {

// Adds, for each point of the other axes but batch and block size, a table of the models at their best block sizes,
// and as notes the batches at which they change places; JSON under "models". `sweep` has the scenario's points that
// `priced` are of, in their order.
void add_model_comparison(const config::Scenario& scenario, const std::vector<config::SweepPoint>& sweep,
                          const std::vector<study::PricedPoint>& priced, const sim::Machine& machine, Report& report,
                          Json& json);

}  // namespace dculab::present

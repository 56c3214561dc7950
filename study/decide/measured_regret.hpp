// What following the predictions costs, by the steps that somebody measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/trace.hpp"
#include "sim/study/recommend.hpp"
#include "sim/study/serving_setting.hpp"

namespace dculab::study {

// What following the predictions costs over the steps of a trace.
struct MeasuredRegret {
  std::optional<sim::Regret> regret;  // nothing where no two choices were measured on the same workloads
  std::vector<std::string> refused;   // steps that cannot be true, and why
};

// Of the steps that can be true. Throws InputError for a trace of another machine, or of other layers.
[[nodiscard]] MeasuredRegret measured_regret(const sim::ServingCase& serving, const Trace& trace);

}  // namespace dculab::study

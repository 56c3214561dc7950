// A GPU profiler's table of kernels as a trace, which machines are calibrated on.
#pragma once

#include <optional>
#include <string>

#include "config/profile/step_import.hpp"
#include "config/scenario_file.hpp"
#include "model/trace.hpp"

namespace dculab::study {

struct ImportQuestion {
  std::string profile;  // a file
  config::Profiler profiler = config::Profiler::automatic;
  config::Scenario scenario;             // the step that was profiled; the profile does not know it
  int new_tokens = 0;                    // of a prefill, per sequence; 0: all of the context
  std::optional<int> growth;             // of the context from one step to the next; absent: 1 in decode, 0 in prefill
  std::optional<config::StepTime> time;  // absent: period in decode, span in prefill
  config::ImportChoices choices{};       // its time is the one above
};

struct ImportedProfile {
  config::Profile profile;
  config::ProfiledWork work;
  config::ImportChoices choices;
  config::ImportedSteps steps;
  Trace trace;
};

// Throws InputError.
[[nodiscard]] ImportedProfile import_profile(const ImportQuestion& question);

}  // namespace dculab::study

// Published speed-ups by drafts beside the closed form, priced steps and simulated requests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "study/decide/speculation_advice.hpp"

namespace dculab::study {

// Of a variant of a scenario's compare.
struct ReportedDraft {
  std::string variant;
  double rate = 0;  // of a chain: at which (1) of sim/speculation/acceptance.hpp gives as many tokens
  double cost = 0;  // of a draft step, over a plain one
  double closed_form = 1;
  DraftOutcome outcome;
  std::optional<double> simulated{};  // TPOT without drafts over that with them, of served requests
  std::optional<double> reported{};
};

// One of each variant, on a machine by name or file. Precondition: the scenario has a compare. Throws InputError.
[[nodiscard]] std::vector<ReportedDraft> reported_drafts(const config::Scenario& scenario, const std::string& machine);

// All of them on one of several machines.
struct ReportedDrafts {
  std::string machine;  // its name
  std::vector<ReportedDraft> drafts;
};

// On each of them. Precondition and exceptions as above.
[[nodiscard]] std::vector<ReportedDrafts> reported_drafts(const config::Scenario& scenario,
                                                          const std::vector<std::string>& machines);

}  // namespace dculab::study

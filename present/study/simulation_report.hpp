// Simulations as tables; their fields in JSON are simulation_fields.hpp.
#pragma once

#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "present/study/serving_report.hpp"
#include "present/values/draft_report.hpp"
#include "study/evaluate/simulation.hpp"

namespace dculab::present {

// What a server with two sets of KV heads served with each.
[[nodiscard]] HeadSetFigures head_sets_of(const study::Simulation& simulation);

// What was drafted in a run.
[[nodiscard]] DraftFigures drafts_of(const sim::ServingRun& run);

// "12 preemptions, 10 of them by swap (1.2 GiB out, 1.1 GiB in, 0.2 s)"
[[nodiscard]] std::string preemption_text(const sim::ServingRun& run);

// "61 tokens/s per user, 1,230 tokens/s per device with prompts; 0.43 J an output token (512 W); 0.35 USD ..."
[[nodiscard]] std::string cost_text(const study::Simulation& simulation);

// "0.57 to 1.75 times their predicted time at 90 % (priors: no traces of this machine, ...)"
[[nodiscard]] std::string trust_text(const sim::StepConfidence& trust);

// Precondition: has intervals.
[[nodiscard]] Table interval_table(const study::Simulation& simulation);

// A row for each; those that skipped tokens say how many.
[[nodiscard]] Table sweep_table(const std::vector<study::Simulation>& all);

}  // namespace dculab::present

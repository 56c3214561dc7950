// How a report names the assumed figures that its answer leans on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "sim/calibration/leanings.hpp"

namespace dculab::present {

// Whose times were priced again: the answer's own, or those of steps behind an answer about requests, which may lean
// otherwise (phase_times of sim/serving/step_sample.hpp).
enum class Priced : std::uint8_t { answer, served_steps };

// "leans on assumed figures (change of the time when one is 10 % off): ...; 12 assumed figures change it by less
// than 1 %"; empty where nothing is assumed.
[[nodiscard]] std::string leaning_text(const sim::Machine& machine, const std::vector<sim::Leaning>& leanings,
                                       Priced priced = Priced::answer);

// Those worth telling: `key`, `change`, `source`.
[[nodiscard]] Json leaning_json(const sim::Machine& machine, const std::vector<sim::Leaning>& leanings);

// Adds a note below the report's last table and the machine's figures to its JSON; returns the JSON of the leanings.
[[nodiscard]] Json add_leanings(const sim::Machine& machine, const std::vector<sim::Leaning>& leanings, Report& report,
                                Priced priced = Priced::answer);

// The same; where nothing was priced, an empty array alone.
[[nodiscard]] Json add_leanings(const sim::Machine& machine, const std::optional<std::vector<sim::Leaning>>& leanings,
                                Report& report);

}  // namespace dculab::present

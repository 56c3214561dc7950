// What was served here, alone and beside its simulation, as tables and as JSON.
#pragma once

#include <map>
#include <string>

#include "engine/generate/serve.hpp"
#include "present/output/report.hpp"

namespace dculab::present {

// A metric's value with its unit: "12.3 ms", "51.2".
[[nodiscard]] Cell figure_cell(const std::string& metric, double value);

// Several replicas in rows: what each did, and what it handed over.
[[nodiscard]] Table served_replica_table(const engine::ServedWorkload& served);
[[nodiscard]] Json served_replica_json(const engine::ServedWorkload& served);

// Metric by metric: simulated, measured, and how far the first is from the second.
[[nodiscard]] Table comparison_table(const std::map<std::string, double>& simulated,
                                     const std::map<std::string, double>& measured);
[[nodiscard]] Json comparison_json(const std::map<std::string, double>& simulated,
                                   const std::map<std::string, double>& measured);

}  // namespace dculab::present

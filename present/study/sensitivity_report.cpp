#include "present/study/sensitivity_report.hpp"

#include <algorithm>
#include <cmath>

#include "present/values/machine_figures.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::present {
namespace {

constexpr double kLeastElasticity = 0.005;  // 0.01 when rounded

[[nodiscard]] std::string flip_cell(const sim::Machine& machine, const std::string& key,
                                    const std::optional<sim::Flip>& flip) {
  if (!flip) return "-";
  return (flip->factor < 1 ? "−" : "+") + percent(std::abs(flip->factor - 1)) + " (" +
         figure_text(machine, key, flip->value) + "): " + flip->choice;
}

[[nodiscard]] std::string kind_of(const sim::Machine& machine, const std::string& key) {
  const std::string* source = sim::source_of(machine, key);
  return source == nullptr ? "prior" : source->substr(0, source->find(':'));
}

}  // namespace

std::vector<ReportedSensitivity> add_sensitivity(const sim::Machine& machine, const std::string& choice,
                                                 const std::vector<sim::Sensitivity>& figures, double within,
                                                 const std::string& metric, Report& report) {
  Table table;
  table.title = "What would change the answer on " + machine.name + ": " + choice;
  table.columns = {"figure", "is", "kind", "1 % more: " + metric, "smaller: another answer", "larger: another answer"};
  std::vector<ReportedSensitivity> reported;
  for (const sim::Sensitivity& each : figures) {
    reported.push_back({each, kind_of(machine, each.key)});
    if (!each.down && !each.up && std::abs(each.elasticity) < kLeastElasticity) continue;
    table.rows.push_back({each.key, figure_text(machine, each.key, each.value), reported.back().kind,
                          number(each.elasticity, 2) + " %", flip_cell(machine, each.key, each.down),
                          flip_cell(machine, each.key, each.up)});
  }
  table.notes.push_back("one figure at a time, from 1/" + number(within) + " to " + number(within) +
                        " times what it is; -: the answer stays");
  report.tables.push_back(std::move(table));
  return reported;
}

}  // namespace dculab::present

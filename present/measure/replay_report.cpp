#include "present/measure/replay_report.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/unit_text.hpp"
#include "present/measure/replay_fields.hpp"
#include "present/output/field_csv.hpp"

namespace dculab::present {
namespace {

// To a tenth of a percent.
[[nodiscard]] std::string rounded_percent(double rate) { return percent(std::round(1000 * rate) / 1000); }

// What reaches the cache below the fastest, and DRAM. JSON and CSV have the rest.
[[nodiscard]] Table replay_table(const std::vector<study::ReplayedOp>& points, std::size_t num_ops) {
  Table table;
  if (num_ops > 1) table.columns.emplace_back("op");
  const auto& levels = points.front().comparison.levels;
  const std::string cache = levels[1].name, memory = levels.back().name;
  table.columns.insert(table.columns.end(), {"KV heads", "block", cache + " bytes", "closed", "ratio",
                                             memory + " bytes", "closed", "ratio", cache + " hit", "closed"});
  for (const study::ReplayedOp& point : points) {
    const auto& here = point.comparison.levels;
    Row row;
    if (num_ops > 1) row.emplace_back(point.comparison.op);
    row.insert(row.end(), {std::to_string(point.kv_heads), std::to_string(point.block_size)});
    for (const sim::ComparedLevel& level : {here[1], here.back()})
      row.insert(row.end(), {config::short_text(level.replayed), config::short_text(level.closed_form),
                             number(level.closed_form / level.replayed)});
    row.insert(row.end(), {rounded_percent(here[1].replayed_hit_rate), rounded_percent(here[1].closed_hit_rate)});
    table.rows.push_back(std::move(row));
  }
  table.notes = {"bytes that reach a level; closed: by the closed form; ratio: closed form / replayed"};
  return table;
}

// One line per kernel: which, and how many of its workgroups a compute unit holds.
[[nodiscard]] std::vector<std::string> kernel_lines(const std::vector<study::ReplayedOp>& points) {
  std::vector<std::string> lines;
  for (const study::ReplayedOp& point : points) {
    const sim::ReplayComparison& comparison = point.comparison;
    std::string line = comparison.kernel + ", " + std::to_string(comparison.workgroups_per_unit) +
                       " workgroups/unit (" + comparison.resources + ")";
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

Report replay_report(const ReplayedStep& step, const std::vector<study::ReplayedOp>& ops) {
  Report report = report_of("dculab/replay/1", ReportedReplay{step, ops});
  const std::string what = step.num_ops > 1 ? step.phase : ops.front().comparison.op + ", " + step.phase;
  report.heading = {step.model + " on " + step.machine + ": " + what + ", batch " + std::to_string(step.batch) +
                    ", context " + std::to_string(step.context) + "; cold caches"};
  const std::vector<std::string> kernels = kernel_lines(ops);
  report.heading.insert(report.heading.end(), kernels.begin(), kernels.end());
  report.tables.push_back(replay_table(ops, step.num_ops));
  return report;
}

}  // namespace dculab::present

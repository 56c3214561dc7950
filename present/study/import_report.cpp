#include "present/study/import_report.hpp"

#include <algorithm>
#include <utility>

#include "config/unit_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/import_fields.hpp"

namespace dculab::present {
namespace {

constexpr std::size_t kShownOthers = 8;

[[nodiscard]] std::string imported_context(const study::ImportedProfile& import) {
  const int first = import.work.context;
  if (import.work.growth == 0) return "context " + std::to_string(first) + " in every step";
  return "context " + std::to_string(first) + " in the first imported step, " + std::to_string(import.work.growth) +
         " more in each that follows; a row has its middle step's";
}

[[nodiscard]] std::vector<std::string> import_heading(const study::ImportedProfile& import) {
  const config::ImportSummary& summary = import.steps.summary;
  const auto count = [](int kernels, Seconds time) {
    return std::to_string(kernels) + " kernels (" + config::short_text(time) + ")";
  };
  std::vector<std::string> lines;
  lines.push_back(std::string(name(import.profile.profiler)) + ": " + std::to_string(import.profile.kernels.size()) +
                  " kernels, " + std::to_string(summary.steps_found) + " whole steps found, " +
                  std::to_string(summary.steps_imported) + " imported");
  lines.push_back(imported_context(import));
  lines.push_back("of the imported steps: " + count(summary.op_kernels, summary.op_time) + " serve an op, " +
                  count(summary.other_kernels, summary.other_time) + " do not: " + percent(summary.other_share()) +
                  " of the kernel time (refused above " + percent(import.choices.most_other) + ")");
  lines.push_back("of other steps and between them: " + count(summary.outside_kernels, summary.outside_time));
  if (!summary.phase_is_told)
    lines.emplace_back(
        "warning: the attention kernels serve prefill and decode under one name, so steps of both are taken alike; if "
        "the profile holds both, choose with --skip-steps and --steps");
  return lines;
}

// The first row's step op by op, then what is left of it.
[[nodiscard]] Table imported_ops(const study::ImportedProfile& import) {
  const TraceStep& row = import.steps.rows.front();
  Table table;
  table.title = row.id + ": " + config::short_text(row.duration) + " ± " + config::short_text(row.spread) + ", " +
                std::to_string(row.repeats) + " steps";
  table.columns = {"op", "kernels per step", "time", "share"};
  const auto add = [&](std::string what, std::string kernels, Seconds time) {
    table.rows.push_back(
        {std::move(what), std::move(kernels), config::short_text(time), percent(time / row.duration, 2)});
  };
  Seconds rest = row.duration;
  for (std::size_t op = 0; op < row.op_names.size(); ++op) {
    const double kernels = import.steps.summary.kernels_per_step[op];
    add(row.op_names[op], kernels == 0 ? "fused" : number(kernels), row.op_durations[op]);
    rest -= row.op_durations[op];
  }
  add("other kernels and gaps", "", rest);
  return table;
}

[[nodiscard]] Table other_kernels(const study::ImportedProfile& import) {
  const std::vector<config::OtherKernel>& others = import.steps.summary.others;
  Table table;
  table.title = "Kernels that serve no op";
  table.columns = {"kernel", "what", "count", "time"};
  for (std::size_t index = 0; index < std::min(kShownOthers, others.size()); ++index) {
    const config::OtherKernel& other = others[index];
    const std::string shown = other.name.size() > 72 ? other.name.substr(0, 69) + "..." : other.name;
    table.rows.push_back({shown, std::string(other.role), std::to_string(other.count), config::short_text(other.time)});
  }
  if (others.size() > kShownOthers) table.notes.push_back("... (" + std::to_string(others.size()) + " names)");
  return table;
}

}  // namespace

Report import_report(const study::ImportedProfile& import) {
  Report report = report_of("dculab/import/1", ReportedImport{import}, import_heading(import));
  report.tables.push_back(imported_ops(import));
  if (!import.steps.summary.others.empty()) report.tables.push_back(other_kernels(import));
  return report;
}

Report kernel_rules_report() {
  Report report = report_of("dculab/import-kernels/1", ReportedKernelRules{config::kernel_rules()});
  Table table;
  table.columns = {"in the name", "op", "whose"};
  for (const config::KernelRule& rule : config::kernel_rules()) {
    table.rows.push_back({std::string(rule.part), std::string(name(rule.role)), std::string(rule.origin)});
  }
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace dculab::present

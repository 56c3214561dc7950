// The fields of what `dculab import` answers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "config/profile/kernel_map.hpp"
#include "present/output/field_json.hpp"
#include "study/calibrate/profile_import.hpp"

namespace dculab::present {

// An op of an imported step.
struct ImportedOp {
  std::string op;
  double kernels = 0;
  Seconds time;
};

struct ImportedStep {
  const TraceStep& step;
  const std::vector<double>& kernels_per_step;  // of each op
};

struct ReportedImport {
  const study::ImportedProfile& import;

  [[nodiscard]] const config::ImportSummary& summary() const { return import.steps.summary; }
};

struct ReportedKernelRules {
  std::span<const config::KernelRule> rules;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ImportedOp> {
  using Op = present::ImportedOp;
  static constexpr std::string_view id = "imported_op";
  static constexpr std::string_view doc = "An op of an imported step.";
  static constexpr auto fields =
      std::tuple(field("op", "its name", &Op::op),
                 field("kernels", "a step; 0: fused into another op's", unit::count, &Op::kernels),
                 field("seconds", "of all executions", &Op::time));
};

template <>
struct FieldList<present::ImportedStep> {
  using Step = present::ImportedStep;
  static constexpr std::string_view id = "imported_step";
  static constexpr std::string_view doc = "Steps of a profile that are alike.";

  [[nodiscard]] static std::vector<present::ImportedOp> ops(const Step& row) {
    std::vector<present::ImportedOp> ops;
    for (std::size_t op = 0; op < row.step.op_names.size(); ++op)
      ops.push_back({row.step.op_names[op], row.kernels_per_step[op], row.step.op_durations[op]});
    return ops;
  }

  static constexpr auto fields = std::tuple(
      field("id", "of the row in the trace", [](const Step& row) { return row.step.id; }),
      field("context_tokens", "of each sequence", unit::tokens,
            [](const Step& row) { return row.step.batch.sequences.front().context_tokens(); }),
      field("step_seconds", "median", [](const Step& row) { return row.step.duration; }),
      field("spread_seconds", "half the interquartile range", [](const Step& row) { return row.step.spread; }),
      field("repeats", "steps", unit::count, [](const Step& row) { return row.step.repeats; }),
      field("ops", "in the order in which they run", &ops));
};

template <>
struct FieldList<config::OtherKernel> {
  using Kernel = config::OtherKernel;
  static constexpr std::string_view id = "other_kernel";
  static constexpr std::string_view doc = "A kernel that serves no op.";
  static constexpr auto fields = std::tuple(
      field("kernel", "its name", &Kernel::name), field("what", "it does", &Kernel::role),
      field("count", "executions", unit::count, &Kernel::count), field("seconds", "all together", &Kernel::time));
};

template <>
struct FieldList<present::ReportedImport> {
  using Self = present::ReportedImport;
  static constexpr std::string_view id = "import";
  static constexpr std::string_view doc = "A profiler's kernels as steps of a trace.";
  static constexpr std::string_view csv_rows = "rows[id, step_seconds].ops";

  [[nodiscard]] static std::vector<present::ImportedStep> rows(const Self& reported) {
    std::vector<present::ImportedStep> rows;
    for (const TraceStep& step : reported.import.steps.rows)
      rows.push_back({step, reported.summary().kernels_per_step});
    return rows;
  }

  static constexpr auto fields = std::tuple(
      field("profiler", "that wrote the profile", names_up_to<config::Profiler::pytorch>(),
            [](const Self& reported) { return name(reported.import.profile.profiler); }),
      field("kernels", "of the profile", unit::count,
            [](const Self& reported) { return reported.import.profile.kernels.size(); }),
      field("steps_found", "whole ones", unit::count,
            [](const Self& reported) { return reported.summary().steps_found; }),
      field("steps_imported", "of these", unit::count,
            [](const Self& reported) { return reported.summary().steps_imported; }),
      field("step_time", "what a step lasts: until the next one begins, or until its own last kernel ends",
            names_up_to<config::StepTime::span>(),
            [](const Self& reported) { return name(reported.import.choices.time); }),
      field("op_seconds", "of kernels that serve an op, in the imported steps",
            [](const Self& reported) { return reported.summary().op_time; }),
      field("other_seconds", "of kernels that do not",
            [](const Self& reported) { return reported.summary().other_time; }),
      field("other_kernels", "that do not", unit::count,
            [](const Self& reported) { return reported.summary().other_kernels; }),
      field("other_share", "of the kernel time, that of those", unit::share,
            [](const Self& reported) { return reported.summary().other_share(); }),
      field("outside_seconds", "of kernels of other steps and between steps",
            [](const Self& reported) { return reported.summary().outside_time; }),
      field("outside_kernels", "of other steps and between steps", unit::count,
            [](const Self& reported) { return reported.summary().outside_kernels; }),
      field("phase_is_told", "by the names of the attention kernels",
            [](const Self& reported) { return reported.summary().phase_is_told; }),
      field("rows", "imported steps that are alike, as one", &rows),
      field("others", "kernels that serve no op, the longest first",
            [](const Self& reported) -> const std::vector<config::OtherKernel>& { return reported.summary().others; }));
};

template <>
struct FieldList<config::KernelRule> {
  using Rule = config::KernelRule;
  static constexpr std::string_view id = "kernel_rule";
  static constexpr std::string_view doc = "What the name of a kernel says.";
  static constexpr auto fields =
      std::tuple(field("part", "of the name", &Rule::part),
                 field("role", "the op that it serves", [](const Rule& rule) { return name(rule.role); }),
                 field("origin", "whose kernels these are", &Rule::origin));
};

template <>
struct FieldList<present::ReportedKernelRules> {
  static constexpr std::string_view id = "kernel_rules";
  static constexpr std::string_view doc = "Which names of kernels are known; the first rule that fits decides.";
  static constexpr std::string_view csv_rows = "rules";
  static constexpr auto fields = std::tuple(field("rules", "in order", &present::ReportedKernelRules::rules));
};

}  // namespace dculab

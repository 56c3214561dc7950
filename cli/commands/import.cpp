// `dculab import`: turns a profiler's table of kernels into a trace.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/profile/kernel_map.hpp"
#include "config/profile/step_import.hpp"
#include "config/trace_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "files/output.hpp"
#include "present/study/held_out_report.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::cli {
namespace {

constexpr std::size_t kShownOthers = 8;

struct ImportCommand {
  std::string profile;
  std::string profiler = "auto";
  StepChoices step;
  int new_tokens = 0;
  std::optional<int> growth;  // none: 1 in decode, 0 in prefill
  std::string step_time;      // "": period in decode, span in prefill
  config::ImportChoices choices;
  std::string trace_file;
  bool list_kernels = false;
  present::OutputOptions output;
};

// All that the report is about.
struct Import {
  config::Profile profile;
  config::ProfiledWork work;
  config::ImportChoices choices;
  config::ImportedSteps steps;
  Trace trace;
};

[[nodiscard]] config::Profiler parse_profiler(const std::string& text) {
  using enum config::Profiler;
  for (const config::Profiler each : {rocprof, rocprofv3, hipprof, nsys})
    if (text == name(each)) return each;
  return automatic;
}

[[nodiscard]] config::ProfiledWork resolve_work(const ImportCommand& command, const config::Scenario& scenario,
                                                const sim::Machine& machine) {
  config::ProfiledWork work;
  work.model = study::resolve_model(scenario);
  work.options = study::resolve_options(scenario, work.model, machine);
  const Batch batch = study::resolve_batch(scenario.workload, work.model, work.options);
  work.phase = scenario.workload.phase;
  work.batch = static_cast<int>(batch.sequences.size());
  work.context = scenario.workload.context_tokens;
  work.new_tokens = command.new_tokens;
  work.growth = command.growth.value_or(work.phase == Phase::decode ? 1 : 0);
  const std::string given = "--new-tokens " + std::to_string(work.new_tokens);
  if (work.phase == Phase::decode && work.new_tokens > 1)
    throw InputError(given + ": a decode step has one new token per sequence; leave it out, or say --phase prefill");
  if (work.new_tokens > work.context)
    throw InputError(given + ": more than --context " + std::to_string(work.context) +
                     ", which counts them too; give the tokens cached once the step is done");
  return work;
}

[[nodiscard]] std::string timing_text(const Import& import) {
  const config::ImportSummary& summary = import.steps.summary;
  std::string text = "GPU timestamps of " + std::string(name(import.profile.profiler)) + ", median of " +
                     std::to_string(summary.steps_imported) + " steps";
  if (import.steps.rows.size() > 1) text += " in " + std::to_string(import.steps.rows.size()) + " rows";
  text += import.choices.time == config::StepTime::period ? ", from a step's first kernel to the next step's"
                                                          : ", from a step's first kernel to the end of its last";
  return text + "; " + present::percent(summary.other_share()) + " of the kernel time serves no op";
}

[[nodiscard]] Import import_profile(const ImportCommand& command) {
  const config::Scenario scenario = to_scenario(command.step);
  study::refuse_unsupported(scenario);
  study::require_one_device(scenario, "a profile");
  const sim::Machine machine = study::resolve_machine(scenario, scenario.machines.front());
  Import import;
  import.work = resolve_work(command, scenario, machine);
  import.choices = command.choices;
  const bool is_period = command.step_time.empty() ? import.work.phase == Phase::decode : command.step_time == "period";
  import.choices.time = is_period ? config::StepTime::period : config::StepTime::span;
  import.profile = config::read_profile_file(command.profile, parse_profiler(command.profiler));
  import.steps = config::import_steps(import.profile, import.work, import.choices);
  TraceHeader& header = import.trace.header;
  header.machine = machine.name;
  header.device = import.profile.kernels.front().device;
  header.build = "imported from " + std::filesystem::path(command.profile).filename().string();
  header.timing = timing_text(import);
  import.trace.steps = import.steps.rows;
  return import;
}

[[nodiscard]] std::string context_text(const Import& import) {
  const int first = import.work.context;
  if (import.work.growth == 0) return "context " + std::to_string(first) + " in every step";
  return "context " + std::to_string(first) + " in the first imported step, " + std::to_string(import.work.growth) +
         " more in each that follows; a row has its middle step's";
}

[[nodiscard]] std::vector<std::string> heading(const Import& import) {
  const config::ImportSummary& summary = import.steps.summary;
  const auto count = [](int kernels, Seconds time) {
    return std::to_string(kernels) + " kernels (" + config::short_text(time) + ")";
  };
  std::vector<std::string> lines;
  lines.push_back(std::string(name(import.profile.profiler)) + ": " + std::to_string(import.profile.kernels.size()) +
                  " kernels, " + std::to_string(summary.steps_found) + " whole steps found, " +
                  std::to_string(summary.steps_imported) + " imported");
  lines.push_back(context_text(import));
  lines.push_back("of the imported steps: " + count(summary.op_kernels, summary.op_time) + " serve an op, " +
                  count(summary.other_kernels, summary.other_time) +
                  " do not: " + present::percent(summary.other_share()) + " of the kernel time (refused above " +
                  present::percent(import.choices.most_other) + ")");
  lines.push_back("of other steps and between them: " + count(summary.outside_kernels, summary.outside_time));
  if (!summary.phase_is_told)
    lines.emplace_back(
        "warning: the attention kernels serve prefill and decode under one name, so steps of both are taken alike; if "
        "the profile holds both, choose with --skip-steps and --steps");
  return lines;
}

// The first row's step op by op, then what is left of it.
[[nodiscard]] present::Table op_table(const Import& import) {
  const TraceStep& row = import.steps.rows.front();
  present::Table table;
  table.title = row.id + ": " + config::short_text(row.duration) + " ± " + config::short_text(row.spread) + ", " +
                std::to_string(row.repeats) + " steps";
  table.columns = {"op", "kernels per step", "time", "share"};
  const auto add = [&](std::string what, std::string kernels, Seconds time) {
    table.rows.push_back({std::move(what), std::move(kernels), present::Cell(config::short_text(time), time.value()),
                          present::Cell(present::percent(time / row.duration, 2), time / row.duration)});
  };
  Seconds rest = row.duration;
  for (std::size_t op = 0; op < row.op_names.size(); ++op) {
    const double kernels = import.steps.summary.kernels_per_step[op];
    add(row.op_names[op], kernels == 0 ? "fused" : present::number(kernels), row.op_durations[op]);
    rest -= row.op_durations[op];
  }
  add("other kernels and gaps", "", rest);
  return table;
}

[[nodiscard]] present::Table others_table(const Import& import) {
  const std::vector<config::OtherKernel>& others = import.steps.summary.others;
  present::Table table;
  table.title = "Kernels that serve no op";
  table.columns = {"kernel", "what", "count", "time"};
  for (std::size_t index = 0; index < std::min(kShownOthers, others.size()); ++index) {
    const config::OtherKernel& other = others[index];
    const std::string shown = other.name.size() > 72 ? other.name.substr(0, 69) + "..." : other.name;
    table.rows.push_back({present::Cell(shown, other.name), std::string(other.role), std::to_string(other.count),
                          present::Cell(config::short_text(other.time), other.time.value())});
  }
  if (others.size() > kShownOthers) table.notes.push_back("... (" + std::to_string(others.size()) + " names)");
  return table;
}

[[nodiscard]] present::Json to_json(const Import& import) {
  const config::ImportSummary& summary = import.steps.summary;
  present::Json json{{"profiler", name(import.profile.profiler)},
                     {"kernels", import.profile.kernels.size()},
                     {"steps_found", summary.steps_found},
                     {"steps_imported", summary.steps_imported},
                     {"step_time", name(import.choices.time)},
                     {"op_seconds", summary.op_time.value()},
                     {"other_seconds", summary.other_time.value()},
                     {"other_kernels", summary.other_kernels},
                     {"other_share", summary.other_share()},
                     {"outside_seconds", summary.outside_time.value()},
                     {"outside_kernels", summary.outside_kernels},
                     {"phase_is_told", summary.phase_is_told},
                     {"rows", present::Json::array()},
                     {"others", present::Json::array()}};
  for (const TraceStep& row : import.steps.rows) {
    present::Json ops = present::Json::array();
    for (std::size_t op = 0; op < row.op_names.size(); ++op)
      ops.push_back({{"op", row.op_names[op]},
                     {"kernels", summary.kernels_per_step[op]},
                     {"seconds", row.op_durations[op].value()}});
    json["rows"].push_back({{"id", row.id},
                            {"context_tokens", row.batch.sequences.front().context_tokens()},
                            {"step_seconds", row.duration.value()},
                            {"spread_seconds", row.spread.value()},
                            {"repeats", row.repeats},
                            {"ops", std::move(ops)}});
  }
  for (const config::OtherKernel& other : summary.others)
    json["others"].push_back(
        {{"kernel", other.name}, {"what", other.role}, {"count", other.count}, {"seconds", other.time.value()}});
  return json;
}

[[nodiscard]] present::Report make_report(const Import& import) {
  present::Report report{"dculab/import/1", heading(import), {op_table(import)}, to_json(import)};
  if (!import.steps.summary.others.empty()) report.tables.push_back(others_table(import));
  return report;
}

[[nodiscard]] present::Report kernel_report() {
  present::Report report{"dculab/import-kernels/1", {}, {}, present::Json{{"rules", present::Json::array()}}};
  present::Table table;
  table.columns = {"in the name", "op", "whose"};
  for (const config::KernelRule& rule : config::kernel_rules()) {
    table.rows.push_back({std::string(rule.part), std::string(name(rule.role)), std::string(rule.origin)});
    report.json["rules"].push_back({{"part", rule.part}, {"role", name(rule.role)}, {"origin", rule.origin}});
  }
  report.tables.push_back(std::move(table));
  return report;
}

void run_import(const ImportCommand& command) {
  if (command.list_kernels) return present::show(kernel_report(), command.output);
  for (const auto& [option, given] : {std::pair("FILE", &command.profile), std::pair("--model", &command.step.model),
                                      std::pair("--machine", &command.step.machine)})
    if (given->empty()) throw CLI::RequiredError(option);
  const Import import = import_profile(command);
  if (!command.trace_file.empty())
    files::write_file_atomically(command.trace_file, config::trace_json_lines(import.trace));
  present::show(make_report(import), command.output);
}

}  // namespace

void add_import(CLI::App& app) {
  CLI::App* command = app.add_subcommand("import", "Turn a GPU profiler's kernels into a trace");
  auto import = std::make_shared<ImportCommand>();
  reads(command->add_option("file", import->profile, "What rocprof, rocprofv3, hipprof or nsys recorded"));
  add_step_choices(*command, import->step);
  for (const char* option : {"--model", "--machine"}) command->get_option(option)->required(false);
  command->add_option("--new-tokens", import->new_tokens, "Prefill: new tokens per sequence, if not the whole context")
      ->check(at_least(1));
  command->add_option("--profiler", import->profiler, "Whose file it is; auto tells by the columns")
      ->check(CLI::IsMember({"auto", "rocprof", "rocprofv3", "hipprof", "nsys"}))
      ->option_text("auto|rocprof|rocprofv3|hipprof|nsys [auto]");
  command->add_option("--growth", import->growth, "Tokens the context grows by per step; 1 in decode, 0 in prefill")
      ->check(at_least(0));
  command->add_option("--step-time", import->step_time, "Until the next step (decode), or the step's own end (prefill)")
      ->check(CLI::IsMember({"period", "span"}))
      ->option_text("period|span");
  command->add_option("--skip-steps", import->choices.skip_steps, "Whole steps to leave out first")->check(at_least(0));
  command->add_option("--steps", import->choices.steps, "Steps to import, 0 = all")->check(at_least(0));
  command->add_option("--steps-per-row", import->choices.steps_per_row, "Steps a row is the median of, 0 = all")
      ->check(at_least(0));
  command->add_option("--max-other", import->choices.most_other, "Share of kernel time that may serve no op [0.1]")
      ->check(CLI::Range(0.0, 1.0));
  add_output_file(*command, "--trace", import->trace_file, "Write the trace here (JSON Lines)");
  command->add_flag("--list-kernels", import->list_kernels, "Print which kernel names serve which op, and end");
  add_output_options(*command, import->output);
  command->callback([import] { run_import(*import); });
}

}  // namespace dculab::cli

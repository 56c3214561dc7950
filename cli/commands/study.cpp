// `dculab study`: the question of a scenario file, predicted and, with --measure, also run on this machine.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/load_choices.hpp"
#include "cli/search/search_options.hpp"
#include "config/machine_file.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "engine/probe/explanation.hpp"
#include "engine/probe/probe.hpp"
#include "files/output.hpp"
#include "present/answer/answered_study.hpp"
#include "present/measure/measured_report.hpp"
#include "study/measure/host_machine.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/speculation.hpp"

namespace dculab::cli {
namespace {

struct StudyChoices {
  present::StudyQuestion question;  // its host file was probed before; empty: probe now
  bool measure = false;
  std::string trace_file;    // written
  std::string machine_file;  // calibrated host, written
  present::OutputOptions output;
};

[[nodiscard]] sim::Machine probe_this_machine(int threads, ProgressBar& bar, present::Report& report) {
  const engine::HostMeasurements host = engine::probe_host(
      {.mode = engine::ProbeMode::quick, .threads = threads, .progress = [&bar](std::string_view label, double share) {
         bar.update("probing: " + std::string(label), share);
       }});
  if (const std::string warning = engine::busy_warning(host); !warning.empty())
    present::add_warnings(report, {warning});
  return study::to_machine(host);
}

void measure(const config::Scenario& scenario, const StudyChoices& choices, ProgressBar& bar, present::Report& report) {
  if (study::is_draft_study(scenario) && !scenario.compare)  // before the machine is probed
    study::require_measurable_drafts(config::sweep_points(scenario).front().scenario);
  const sim::Machine host = choices.question.host_file.empty()
                                ? probe_this_machine(scenario.measure.threads, bar, report)
                                : study::resolve_machine(choices.question.host_file);
  const study::MeasuredStudy measured = study::measure_study(
      scenario, host, [&bar](const std::string& label, double share) { bar.update(label, share); });
  present::add_measured_study(scenario, measured, report);
  if (!choices.trace_file.empty())
    files::write_file_atomically(choices.trace_file, config::trace_json_lines(measured.trace()));
  if (!choices.machine_file.empty())
    files::write_file_atomically(choices.machine_file, config::machine_yaml(measured.machine()));
}

[[nodiscard]] present::Report study(StudyChoices& choices) {
  if (!choices.measure && !(choices.trace_file.empty() && choices.machine_file.empty()))
    throw InputError("--trace and --machine-file are written by a study that measures; add --measure");
  ProgressBar bar;
  if (choices.measure)
    choices.question.measure = [&choices, &bar](const config::Scenario& scenario, present::Report& report) {
      measure(scenario, choices, bar, report);
    };
  if (choices.question.scenarios.empty())  // where there is none either, the options alone
    choices.question.scenarios.push_back(study::take_scenario(choices.question.load));
  return present::answered_study(choices.question, search_events(bar));
}

}  // namespace

void add_study(CLI::App& app) {
  CLI::App* command = app.add_subcommand("study", "Answer the question of a scenario file, or of options");
  auto choices = std::make_shared<StudyChoices>();
  reads(command->add_option("scenario", choices->question.scenarios, "Scenario files, or names under scenarios"),
        study::try_find_scenario);
  add_load_choices(*command, choices->question.load);
  command->add_flag("--measure", choices->measure,
                    "Also run the sweep, or serve the requests, on this machine: calibrate and score");
  reads(command->add_option("--host", choices->question.host_file, "Machine file of this host, instead of probing now"),
        study::try_find_machine);
  add_output_file(*command, "--trace", choices->trace_file, "With --measure: write the trace here");
  add_output_file(*command, "--machine-file", choices->machine_file,
                  "With --measure: write the calibrated machine here");
  add_answer_options(*command, choices->question.search);
  add_pricing_options(*command, choices->question.search);
  add_report_options(*command, choices->output);
  add_examples(*command, {"dculab study llama3_on_dcu",
                          "dculab study llama3_on_dcu --set workload.batch=8 --format json --output answer.json"});
  command->callback([choices] { present::show(study(*choices), choices->output); });
}

}  // namespace dculab::cli

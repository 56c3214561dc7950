// `dculab study`: the question of a scenario file, predicted and, with --measure, also run on this machine.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "cli/search/search_study.hpp"
#include "config/machine_file.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "engine/probe/probe.hpp"
#include "files/output.hpp"
#include "present/measure/measured_report.hpp"
#include "present/study/study_report.hpp"
#include "study/answer/study_question.hpp"
#include "study/measure/host_machine.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/serving_scenario.hpp"
#include "study/scenario/speculation.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::cli {
namespace {

constexpr const char* kHost = "host";

struct StudyChoices {
  std::vector<std::string> scenarios;
  bool measure = false;
  std::string host_file;     // probed before; empty: probe now
  std::string trace_file;    // written
  std::string machine_file;  // calibrated host, written
  std::vector<std::string> set;
  std::string stack;
  SearchChoices search;
  present::OutputOptions output;
};

[[nodiscard]] sim::Machine probe_this_machine(int threads, ProgressBar& bar) {
  return study::to_machine(engine::probe_host(
      {.mode = engine::ProbeMode::quick, .threads = threads, .progress = [&bar](std::string_view label, double share) {
         bar.update("probing: " + std::string(label), share);
       }}));
}

void measure(const config::Scenario& scenario, const StudyChoices& choices, present::Report& report) {
  if (study::is_draft_study(scenario) && !scenario.compare)  // before the machine is probed
    study::require_measurable_drafts(config::sweep_points(scenario).front().scenario);
  ProgressBar bar;
  const sim::Machine host = choices.host_file.empty() ? probe_this_machine(scenario.measure.threads, bar)
                                                      : study::resolve_machine(choices.host_file);
  const study::MeasuredStudy measured = study::measure_study(
      scenario, host, [&bar](const std::string& label, double share) { bar.update(label, share); });
  present::add_measured_study(scenario, measured, report);
  if (!choices.trace_file.empty())
    files::write_file_atomically(choices.trace_file, config::trace_json_lines(measured.trace()));
  if (!choices.machine_file.empty())
    files::write_file_atomically(choices.machine_file, config::machine_yaml(measured.machine()));
}

// The names of the scenario's machines; `host` is the file that was probed before.
[[nodiscard]] std::vector<std::string> names_of(const config::Scenario& scenario, const StudyChoices& choices) {
  if (std::ranges::find(scenario.machines, kHost) != scenario.machines.end() && choices.host_file.empty())
    throw InputError(scenario.file, "machine: host is this machine, which has no file; add --measure, or " +
                                        std::string("--host FILE with what `dculab probe --machine-file` wrote"));
  std::vector<std::string> names = scenario.machines;
  std::ranges::replace(names, std::string(kHost), choices.host_file);
  return names;
}

// An option that would change nothing is refused: somebody waits for what it should do.
void refuse_ignored(const config::Scenario& scenario, const StudyChoices& choices) {
  const bool is_search = study::kind_of(scenario) == study::StudyKind::search;
  if (!scenario.choose.empty() && (choices.measure || choices.search.sensitivity))
    throw InputError(scenario.file, "choose: designs are predicted; leave --measure and --sensitivity out");
  if (study::drafts(scenario) && choices.search.sensitivity)
    throw InputError(scenario.file, "engine.speculative_config: a study of drafts has no --sensitivity; leave it out");
  if (choices.measure && (scenario.compare || study::drafts(scenario)) && !study::is_served(scenario))
    study::require_one_device(scenario, scenario.compare ? "a measured comparison" : "a measured study of drafts");
  if (choices.measure && is_search)
    throw InputError(scenario.file, "a search is predicted; leave --measure out, or objective, pareto and constraints");
  const std::string option = search_option(choices.search), files = files_option(choices.search);
  if (!option.empty() && !is_search)
    throw InputError(option, "is of a search, which " + scenario.file +
                                 " is not: it has compare or accuracy, or neither objective, pareto nor constraints");
  if (choices.search.sensitivity && (choices.measure || scenario.compare || scenario.accuracy))
    throw InputError("--sensitivity", "is of a predicted recommendation or search, which this study of " +
                                          scenario.file + " is not; leave it out");
  if (!files.empty() && !scenario.then.empty())
    throw InputError(files, "is of one search, and " + scenario.file +
                                " names others under `then`; take `then` out and study each with files of its own");
}

void predict(const config::Scenario& scenario, const StudyChoices& choices, present::Report& report) {
  const study::StudyKind kind = study::kind_of(scenario);
  if (kind == study::StudyKind::search) return search_study(scenario, choices.search, report);
  // Elsewhere than in a search, or for designs, every point is priced on the machines that the scenario lists.
  const bool designs = kind == study::StudyKind::designs;
  if (!designs)
    study::refuse_machine_axes(scenario,
                               "belongs to a search; with compare or accuracy list machines under `machines`, or " +
                                   std::string("give one figure with --set"));
  const std::vector<std::string> machines = designs ? scenario.machines : names_of(scenario, choices);
  const double within = choices.search.sensitivity ? choices.search.within : 0;
  present::add_study_answer(scenario, study::answer_study(scenario, machines, within), report);
}

[[nodiscard]] study::Journaled journaled(const config::Scenario& scenario, const StudyChoices& choices) {
  if (!choices.search.pricing.journal.empty()) return study::Journaled::yes;
  return scenario.then.empty() && choices.scenarios.size() == 1 ? study::Journaled::no : study::Journaled::not_alone;
}

[[nodiscard]] present::Report study(const std::string& file, const StudyChoices& choices) {
  config::Scenario scenario = study::read_with(study::find_scenario(file), choices.set);
  refuse_ignored(scenario, choices);
  if (choices.measure && study::is_served(scenario))
    scenario = study::read_serving_scenario(file, choices.set);
  else
    study::refuse_unanswered(scenario);
  study::refuse_long(scenario, journaled(scenario, choices));
  const std::vector<config::Scenario> followers = study::read_followers(scenario);  // before the work
  present::Report report = present::study_report(scenario.question);
  if (!choices.measure)
    for (std::string& line : study::whose_kernels(scenario)) report.heading.push_back(std::move(line));
  present::add_warnings(report, study::model_notes(scenario));
  if (choices.measure && scenario.accuracy)
    throw InputError(scenario.file, "accuracy: is measured already, and speed is predicted; leave --measure out");
  if (choices.measure)
    measure(scenario, choices, report);
  else
    predict(scenario, choices, report);
  for (const config::Scenario& next : followers) {
    present::Report part{"", {}, {}, present::Json::object()};
    predict(next, choices, part);
    present::add_follower(next.question, study::model_notes(next), std::move(part), report);
  }
  return report;
}

// One report of several scenarios: each one's heading stands above its first table.
[[nodiscard]] present::Report study_all(const StudyChoices& choices) {
  if (choices.measure && choices.scenarios.size() > 1)
    throw InputError("--measure runs one scenario at a time; give one");
  if (!choices.measure && !(choices.trace_file.empty() && choices.machine_file.empty()))
    throw InputError("--trace and --machine-file are written by a study that measures; add --measure");
  if (const std::string files = files_option(choices.search); choices.scenarios.size() > 1 && !files.empty())
    throw InputError(files, "is of one scenario; give one");
  if (choices.scenarios.size() == 1) return study(choices.scenarios.front(), choices);
  for (const std::string& file : choices.scenarios)
    static_cast<void>(study::read_with(study::find_scenario(file), choices.set));  // before the work
  present::Report all = present::studies_report();
  for (const std::string& file : choices.scenarios) present::add_study(study(file, choices), all);
  return all;
}

}  // namespace

void add_study(CLI::App& app) {
  CLI::App* command = app.add_subcommand("study", "Answer the question of a scenario file");
  auto choices = std::make_shared<StudyChoices>();
  reads(command->add_option("scenario", choices->scenarios, "Scenario files, or names under scenarios"),
        study::try_find_scenario)
      ->required();
  command->add_flag("--measure", choices->measure,
                    "Also run the sweep, or serve the requests, on this machine: calibrate and score");
  reads(command->add_option("--host", choices->host_file, "Machine file of this host, instead of probing now"),
        study::try_find_machine);
  add_output_file(*command, "--trace", choices->trace_file, "With --measure: write the trace here");
  add_output_file(*command, "--machine-file", choices->machine_file,
                  "With --measure: write the calibrated machine here");
  add_stack_option(*command, choices->stack);
  command->add_option("--set", choices->set, "key=value: override any scenario key")->option_text("KEY=VALUE ...");
  add_answer_options(*command, choices->search);
  add_pricing_options(*command, choices->search);
  add_report_options(*command, choices->output);
  command->callback([choices] {
    set_stack(choices->stack, choices->set);
    present::show(study_all(*choices), choices->output);
  });
}

}  // namespace dculab::cli

// `dculab study`: the question of a scenario file, predicted and, with --measure, also run on this machine.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "cli/search/search_study.hpp"
#include "cli/serving/served_study.hpp"
#include "cli/study/compared_study.hpp"
#include "cli/study/design_study.hpp"
#include "cli/study/group_study.hpp"
#include "cli/study/measured_comparison.hpp"
#include "cli/study/measured_speculation.hpp"
#include "cli/study/measured_study.hpp"
#include "cli/study/predicted_study.hpp"
#include "cli/study/speculation_study.hpp"
#include "config/machine_file.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "engine/probe/probe.hpp"
#include "files/output.hpp"
#include "present/values/accuracy_text.hpp"
#include "study/decide/designs.hpp"
#include "study/decide/draft_study.hpp"
#include "study/measure/host_machine.hpp"
#include "study/measure/measured_drafts.hpp"
#include "study/scenario/idle_axes.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"
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

[[nodiscard]] config::Scenario read(const std::string& file, const std::vector<std::string>& set) {
  std::vector<config::Override> overrides;
  for (const std::string& change : set) overrides.push_back(config::parse_override(change));
  config::Scenario scenario = config::read_scenario_file(file, overrides);
  study::refuse_written_inputs(scenario);
  return scenario;
}

[[nodiscard]] sim::Machine probe_this_machine(int threads, ProgressBar& bar) {
  return study::to_machine(engine::probe_host(
      {.mode = engine::ProbeMode::quick, .threads = threads, .progress = [&bar](std::string_view label, double share) {
         bar.update("probing: " + std::string(label), share);
       }}));
}

// Requests that the engine here serves in real time; compare has a closed form for them.
[[nodiscard]] bool is_served(const config::Scenario& scenario) {
  return scenario.workload.kind == config::WorkloadKind::serving && !scenario.compare && !scenario.accuracy;
}

[[nodiscard]] MeasuredStudy measure_on(const sim::Machine& host, const config::Scenario& scenario,
                                       present::Report& report, ProgressBar& bar) {
  if (is_served(scenario)) {
    bar.clear();
    return measure_serving_study(scenario, host, report);
  }
  if (study::is_draft_study(scenario) && !scenario.compare) return measure_speculation(scenario, host, report, bar);
  return scenario.compare ? measure_comparison(scenario, host, report, bar)
                          : measure_study(scenario, host, report, bar);
}

void measure(const config::Scenario& scenario, const StudyChoices& choices, present::Report& report) {
  if (study::is_draft_study(scenario) && !scenario.compare)  // before the machine is probed
    study::require_measurable_drafts(config::sweep_points(scenario).front().scenario);
  ProgressBar bar;
  const sim::Machine host = choices.host_file.empty() ? probe_this_machine(scenario.measure.threads, bar)
                                                      : study::resolve_machine(choices.host_file);
  const MeasuredStudy study = measure_on(host, scenario, report, bar);
  if (!choices.trace_file.empty())
    files::write_file_atomically(choices.trace_file, config::trace_json_lines(study.trace));
  if (!choices.machine_file.empty())
    files::write_file_atomically(choices.machine_file, config::machine_yaml(study.machine));
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

[[nodiscard]] std::vector<sim::Machine> machines_of(const config::Scenario& scenario, const StudyChoices& choices) {
  std::vector<sim::Machine> machines;
  for (const std::string& name : names_of(scenario, choices))
    machines.push_back(study::resolve_machine(scenario, name));
  return machines;
}

[[nodiscard]] bool is_search(const config::Scenario& scenario) {
  return study::asks_for_search(scenario) && !scenario.compare && !scenario.accuracy && scenario.choose.empty();
}

// What neither steps nor requests answer.
void refuse_unanswered(const config::Scenario& scenario) {
  study::refuse_idle_axes(scenario);
  if (!scenario.choose.empty() || scenario.accuracy) study::refuse_drafts(scenario, "a study with choose or accuracy");
  if (study::asks_for_search(scenario) && !is_served(scenario)) study::refuse_drafts(scenario, "a search over steps");
  if (study::is_draft_study(scenario)) return;
  if (!scenario.choose.empty()) study::refuse_undecided(scenario);
  if (is_served(scenario) && is_search(scenario)) return study::refuse_unserved(scenario);
  study::refuse_unsupported(scenario);
}

// An option that would change nothing is refused: somebody waits for what it should do.
void refuse_ignored(const config::Scenario& scenario, const StudyChoices& choices) {
  if (!scenario.choose.empty() && (choices.measure || choices.search.sensitivity))
    throw InputError(scenario.file, "choose: designs are predicted; leave --measure and --sensitivity out");
  if (study::drafts(scenario) && choices.search.sensitivity)
    throw InputError(scenario.file, "engine.speculative_config: a study of drafts has no --sensitivity; leave it out");
  if (choices.measure && (scenario.compare || study::drafts(scenario)) && !is_served(scenario))
    study::require_one_device(scenario, scenario.compare ? "a measured comparison" : "a measured study of drafts");
  if (choices.measure && is_search(scenario))
    throw InputError(scenario.file, "a search is predicted; leave --measure out, or objective, pareto and constraints");
  const std::string option = search_option(choices.search), files = files_option(choices.search);
  if (!option.empty() && !is_search(scenario))
    throw InputError(option, "is of a search, which " + scenario.file +
                                 " is not: it has compare or accuracy, or neither objective, pareto nor constraints");
  if (choices.search.sensitivity && (choices.measure || scenario.compare || scenario.accuracy))
    throw InputError("--sensitivity", "is of a predicted recommendation or search, which this study of " +
                                          scenario.file + " is not; leave it out");
  if (!files.empty() && !scenario.then.empty())
    throw InputError(files, "is of one search, and " + scenario.file +
                                " names others under `then`; take `then` out and study each with files of its own");
}

// A search that takes long and could not go on where it was stopped. `is_one`: it may have a journal, for it is studied
// alone.
void refuse_long(const config::Scenario& scenario, bool has_journal, bool is_one) {
  constexpr std::uint64_t kMostWithoutJournal = 100'000'000;  // steps: some half an hour of one core
  const std::uint64_t points = config::num_points(scenario.sweep);
  if (has_journal || !is_search(scenario) || points <= kMostWithoutJournal) return;
  throw InputError(scenario.file,
                   "sweep: " + std::to_string(points) + " points take long, and are lost when the search is stopped; " +
                       (is_one ? "keep them with --journal FILE" : "study it alone with --journal FILE") +
                       ", or sweep fewer");
}

// Several numbers of KV heads were weighed, and nothing says what they cost in accuracy.
[[nodiscard]] bool leaves_heads_open(const present::Json& json) {
  if (!json.contains("machines")) return false;
  return std::ranges::any_of(json["machines"], [](const present::Json& machine) {
    const auto found = machine.find("recommendation");
    return found != machine.end() && found->contains("kv_heads_front") && (*found)["kv_heads_by"] == "own" &&
           (*found)["kv_heads_front"].size() > 1;
  });
}

void predict(const config::Scenario& scenario, const StudyChoices& choices, present::Report& report) {
  if (is_search(scenario)) return search_study(scenario, choices.search, report);
  if (!scenario.choose.empty()) return study_designs(scenario, report);
  // Elsewhere than in a search, every point is priced on the machines that the scenario lists.
  study::refuse_machine_axes(scenario,
                             "belongs to a search; with compare or accuracy list machines under `machines`, or " +
                                 std::string("give one figure with --set"));
  if (study::is_draft_study(scenario)) return study_speculation(scenario, names_of(scenario, choices), report);
  if (scenario.compare) {
    compare_study(scenario, names_of(scenario, choices), report);
    return;
  }
  const std::vector<sim::Machine> machines = machines_of(scenario, choices);
  if (scenario.accuracy && scenario.workload.kind == config::WorkloadKind::serving)
    study_group_size(scenario, machines, report);
  else
    for (const sim::Machine& machine : machines)
      predict_study_on(scenario, machine, choices.search.sensitivity ? choices.search.within : 0, report);
  if (leaves_heads_open(report.json)) report.tables.push_back(present::elsewhere_table());
}

// The scenarios that `then` names, beside the first one's file or among the shipped ones.
[[nodiscard]] std::vector<config::Scenario> read_followers(const config::Scenario& scenario) {
  std::vector<config::Scenario> followers;
  for (const std::string& follower : scenario.then) {
    const std::filesystem::path beside = std::filesystem::path(scenario.file).parent_path() / follower;
    followers.push_back(read(std::filesystem::exists(beside) ? beside : study::find_scenario(follower), {}));
    refuse_unanswered(followers.back());
    refuse_long(followers.back(), false, false);
  }
  return followers;
}

void study_followers(const std::vector<config::Scenario>& followers, const StudyChoices& choices,
                     present::Report& report) {
  for (const config::Scenario& next : followers) {
    present::Report part{"", {}, {}, present::Json::object()};
    predict(next, choices, part);
    for (const std::string& line : part.heading)  // its question stands above its tables
      if (line.starts_with("warning: ") && std::ranges::find(report.heading, line) == report.heading.end())
        report.heading.push_back(line);
    if (part.tables.empty()) continue;
    part.tables.front().title = "Then: " + next.question + "\n\n" + part.tables.front().title;
    for (present::Table& table : part.tables) report.tables.push_back(std::move(table));
    part.json["question"] = next.question;
    report.json["then"].push_back(std::move(part.json));
    present::add_warnings(report, study::model_notes(next));
  }
}

[[nodiscard]] present::Report study(const std::string& file, const StudyChoices& choices) {
  config::Scenario scenario = read(study::find_scenario(file), choices.set);
  refuse_ignored(scenario, choices);
  if (choices.measure && is_served(scenario))
    scenario = study::read_serving_scenario(file, choices.set);
  else
    refuse_unanswered(scenario);
  refuse_long(scenario, !choices.search.pricing.journal.empty(),
              scenario.then.empty() && choices.scenarios.size() == 1);
  const std::vector<config::Scenario> followers = read_followers(scenario);  // what is wrong with them is told first
  present::Report report{"dculab/study/1", {scenario.question}, {}, present::Json{{"question", scenario.question}}};
  if (!choices.measure)
    for (std::string& line : study::whose_kernels(scenario)) report.heading.push_back(std::move(line));
  present::add_warnings(report, study::model_notes(scenario));
  if (choices.measure && scenario.accuracy)
    throw InputError(scenario.file, "accuracy: is measured already, and speed is predicted; leave --measure out");
  if (choices.measure)
    measure(scenario, choices, report);
  else
    predict(scenario, choices, report);
  study_followers(followers, choices, report);
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
    (void)read(study::find_scenario(file), choices.set);  // before the work
  present::Report all{"dculab/study/1", {}, {}, present::Json{{"studies", present::Json::array()}}};
  for (const std::string& file : choices.scenarios) {
    present::Report report = study(file, choices);
    std::string heading;
    for (const std::string& line : report.heading) heading += line + "\n";
    report.tables.front().title = heading + "\n" + report.tables.front().title;
    for (present::Table& table : report.tables) all.tables.push_back(std::move(table));
    all.json["studies"].push_back(std::move(report.json));
  }
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
